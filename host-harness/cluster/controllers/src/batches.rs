//! Slow start: `slowStartBatch` of the upstream controllers.
//!
//! What is to be done for many objects is done for one, then for two at once, then for four, up to 500.
//! The first batch with a failure is the last one. So a cluster that refuses everything is asked once
//! and not a thousand times.

use std::future::Future;
use std::ops::Range;

use futures::future::join_all;

/// The largest batch of the StatefulSet controller.
pub const LARGEST: usize = 500;

/// The batches of so many slots.
pub fn batches(count: usize) -> impl Iterator<Item = Range<usize>> {
    let (mut start, mut size) = (0, 1);
    std::iter::from_fn(move || {
        let batch = start..count.min(start + size);
        start = batch.end;
        size = (size * 2).min(LARGEST);
        (!batch.is_empty()).then_some(batch)
    })
}

/// Runs `run` for each slot, batch by batch, and stops after the first batch with a failure, which is
/// the first one's of that batch.
///
/// # Errors
/// What the first slot that failed says.
pub async fn slow_start<E, F>(count: usize, run: impl Fn(usize) -> F) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    for batch in batches(count) {
        join_all(batch.map(&run)).await.into_iter().collect::<Result<(), E>>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn batches_double_from_one_up_to_500() {
        let sizes = |count| batches(count).map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(500), [1, 2, 4, 8, 16, 32, 64, 128, 245]);
        assert_eq!(sizes(1600), [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 89]);
    }

    #[tokio::test]
    async fn a_batch_with_a_failure_is_finished_and_the_last() {
        let seen = Mutex::new(Vec::new());
        let run = async |slot| {
            seen.lock().expect("nobody panicked").push(slot);
            if slot == 4 || slot == 5 { Err(slot) } else { Ok(()) }
        };
        assert_eq!(slow_start(20, run).await, Err(4));
        assert_eq!(*seen.lock().expect("nobody panicked"), [0, 1, 2, 3, 4, 5, 6]);
    }
}
