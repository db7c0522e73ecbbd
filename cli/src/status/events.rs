//! The events of an object, newest last.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;

use crate::snapshot::{api, list};

/// How many are shown.
const SHOWN: usize = 6;

/// The last events of an object, as lines.
///
/// # Errors
/// What the API server answers.
pub(super) async fn last(client: &Client, namespace: &str, uid: &str) -> kube::Result<Vec<String>> {
    let params = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let mut events = list(&api::<Event>(client, Some(namespace)), params).await?;
    events.sort_by_key(|event| (time(event), event.metadata.name.clone()));
    let skipped = events.len().saturating_sub(SHOWN);
    Ok(events.iter().skip(skipped).map(|event| line(event, Timestamp::now())).collect())
}

/// When it happened last.
fn time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0).or(event.first_timestamp.as_ref().map(|time| time.0));
    series.or(last).or(first)
}

fn line(event: &Event, now: Timestamp) -> String {
    let age = time(event).map(|time| age(now.as_second() - time.as_second())).unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    // One line each: a message may have several.
    let message = event.message.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let warning = if event.type_.as_deref() == Some("Warning") { "Warning " } else { "" };
    let times = event.series.as_ref().and_then(|series| series.count).or(event.count).filter(|count| *count > 1);
    let times = times.map(|count| format!(" ({count} times)")).unwrap_or_default();
    format!("{age} ago  {warning}{reason}: {message}{times}")
}

/// A time span in its largest unit.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        for (seconds, text) in [(-3, "0s"), (5, "5s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")] {
            assert_eq!(age(seconds), text);
        }
    }
}
