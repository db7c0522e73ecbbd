//! Informers over HTTP.

mod api;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::Api;
use cluster_controllers::informer::{Change, informer};
use cluster_controllers::{Common, Key, Lag};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

fn pod(name: &str) -> Value {
    json!({ "metadata": { "namespace": "prod", "name": name }, "spec": { "containers": [] } })
}

#[tokio::test]
async fn changes_are_told_in_order_and_as_late_as_the_lag_says() {
    let api = Api::start().await;
    api.put("pods", pod("a"));
    let mut common = Common::new("test", 1);
    // Only one of them is late, and the next ones wait behind it.
    common.lag = Lag::by(|delivery| match delivery.key {
        Some(key) if key.name == "late" => Duration::from_millis(300),
        _ => Duration::ZERO,
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let (store, feed) = informer(
        kube::Api::<Pod>::all(api.client()),
        &common,
        |_| {},
        move |change| {
            let word = match &change {
                Change::Added(_) => "+",
                Change::Updated { .. } => "=",
                Change::Deleted(_) => "-",
            };
            let text = format!("{word}{}", Key::of(&**change.object()).name);
            tell.lock().expect("nobody panicked").push(text);
        },
    );
    let feed = tokio::spawn(feed);
    store.synced().await;
    assert!(store.get(&Key::new("prod", "a")).is_some());
    let before = Instant::now();
    api.put("pods", pod("late"));
    api.modify("pods", "a", |pod| pod["metadata"]["labels"] = json!({ "x": "y" }));
    api.delete("pods", "a", "Background");
    while told.lock().expect("nobody panicked").len() < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert_eq!(*told.lock().expect("nobody panicked"), ["+a", "+late", "=a", "-a"]);
    assert!(store.get(&Key::new("prod", "a")).is_none());
    feed.abort();
}
