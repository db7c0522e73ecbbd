//! Informers over HTTP.

mod api;

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
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
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
            tell.send(text).expect("the test listens");
        },
    );
    let feed = tokio::spawn(feed);
    store.synced().await;
    assert!(store.get(&Key::new("prod", "a")).is_some());
    let before = Instant::now();
    api.put("pods", pod("late"));
    api.modify("pods", "a", |pod| pod["metadata"]["labels"] = json!({ "x": "y" }));
    api.delete("pods", "a", "Background");
    for expected in ["+a", "+late", "=a", "-a"] {
        let heard = tokio::time::timeout(Duration::from_secs(20), told.recv()).await;
        assert_eq!(heard.expect("it is told in time").as_deref(), Some(expected));
    }
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert!(store.get(&Key::new("prod", "a")).is_none());
    feed.abort();
}
