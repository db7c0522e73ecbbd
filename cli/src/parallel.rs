//! Reviews what stands in a stream on all processors. What is found comes in the order of the stream, and
//! only a few batches of documents are held at a time.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::documents::{Document, Documents};
use crate::finding::Finding;
use crate::lint::{Linter, Totals};

/// How many bytes are handed over at once, at least: enough that handing over costs next to nothing.
const BATCH: usize = 1 << 16;

/// Documents that follow each other.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    /// Where each ends in the text, and the line of the stream that it begins in.
    documents: Vec<(usize, usize)>,
}

/// What was found in a batch.
type Found = io::Result<(Vec<Finding>, Totals)>;

/// A batch that is to be reviewed, and who waits for what is found in it.
struct Job {
    batch: Batch,
    answer: SyncSender<Found>,
}

impl Batch {
    /// The next batch of a stream; none at its end.
    fn read<R: BufRead>(documents: &mut Documents<R>) -> io::Result<Option<Self>> {
        let mut batch = Self::default();
        while batch.text.len() < BATCH {
            let Some(document) = documents.read()? else { break };
            batch.text.extend_from_slice(document.text);
            batch.documents.push((batch.text.len(), document.line));
        }
        Ok(Some(batch).filter(|batch| !batch.documents.is_empty()))
    }

    fn review(&self, file: &str, linter: &mut Linter) -> Found {
        let mut findings = Vec::new();
        let mut sink = |finding: &Finding| {
            findings.push(finding.clone());
            Ok(())
        };
        linter.totals = Totals::default();
        let mut start = 0;
        for (end, line) in &self.documents {
            let text = self.text.get(start..*end).unwrap_or_default();
            linter.document(file, Document { text, line: *line }, &mut sink)?;
            start = *end;
        }
        Ok((findings, linter.totals))
    }
}

/// Reviews what stands in a stream, on so many threads; on this one alone, where there is little. `told` gets
/// what is found, batch by batch, with the totals so far.
///
/// # Errors
/// The stream cannot be read, or `told` fails.
pub fn lint(
    linter: &mut Linter,
    threads: NonZeroUsize,
    file: &str,
    stream: impl BufRead,
    mut told: impl FnMut(&[Finding], &Totals) -> io::Result<()>,
) -> io::Result<()> {
    let mut documents = Documents::new(stream);
    let mut totals = linter.totals;
    let mut tell = |found: Found| {
        let (findings, more) = found?;
        totals.add(more);
        told(&findings, &totals)
    };
    let begun = [Batch::read(&mut documents)?, Batch::read(&mut documents)?];
    let is_little = begun.iter().any(Option::is_none);
    let rest = std::iter::from_fn(|| Batch::read(&mut documents).transpose());
    let mut batches = begun.into_iter().flatten().map(Ok).chain(rest);
    let result = if is_little || threads.get() == 1 {
        batches.try_for_each(|batch| tell(batch?.review(file, linter)))
    } else {
        together(linter, threads, file, batches, &mut tell)
    };
    linter.totals = totals;
    result
}

fn together(
    linter: &Linter,
    threads: NonZeroUsize,
    file: &str,
    batches: impl Iterator<Item = io::Result<Batch>>,
    tell: &mut impl FnMut(Found) -> io::Result<()>,
) -> io::Result<()> {
    let (jobs, queue) = channel::<Job>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        // With it the threads end.
        let jobs = jobs;
        for _ in 0..threads.get() {
            let mut linter = linter.another();
            let queue = &queue;
            scope.spawn(move || work(queue, file, &mut linter));
        }
        let mut waiting = VecDeque::new();
        for batch in batches {
            waiting.push_back(hand_over(&jobs, batch?)?);
            if waiting.len() > 2 * threads.get() {
                waiting.pop_front().map_or(Ok(()), |found| tell(answer(&found)))?;
            }
        }
        waiting.into_iter().try_for_each(|found| tell(answer(&found)))
    })
}

fn work(queue: &Mutex<Receiver<Job>>, file: &str, linter: &mut Linter) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { batch, answer }) = job else { return };
        // Nobody waits for it where telling has failed.
        let _ = answer.send(batch.review(file, linter));
    }
}

fn hand_over(jobs: &Sender<Job>, batch: Batch) -> io::Result<Receiver<Found>> {
    let (answer, found) = sync_channel(1);
    jobs.send(Job { batch, answer }).map_err(io::Error::other)?;
    Ok(found)
}

fn answer(found: &Receiver<Found>) -> Found {
    found.recv().map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use statefulset_scheduling_core::admission::Settings;

    const GOOD: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    const BAD: &str = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec: {scheduling: 3}\n";

    fn lint_on(threads: usize, stream: &str) -> (Vec<Finding>, Totals) {
        let mut linter = Linter::new(Settings::default());
        let mut found = Vec::new();
        let threads = NonZeroUsize::new(threads).unwrap();
        let told = |findings: &[Finding], _: &Totals| {
            found.extend_from_slice(findings);
            Ok(())
        };
        lint(&mut linter, threads, "x", stream.as_bytes(), told).unwrap();
        (found, linter.totals)
    }

    #[test]
    fn what_is_found_is_the_same_on_any_number_of_threads_and_in_order() {
        for (repeated, threads) in [(0, 2), (1, 2), (9_000, 1), (9_000, 2), (9_000, 5)] {
            let mut stream = String::new();
            for number in 0..repeated {
                stream.push_str(if number % 7 == 3 { BAD } else { GOOD });
            }
            let mut linter = Linter::new(Settings::default());
            let mut expected = Vec::new();
            let mut sink = |finding: &Finding| {
                expected.push(finding.clone());
                Ok(())
            };
            linter.lint("x", stream.as_bytes(), &mut sink).unwrap();
            assert_eq!(lint_on(threads, &stream), (expected, linter.totals), "{repeated} on {threads}");
        }
    }

    #[test]
    fn who_cannot_be_told_ends_it() {
        let stream = BAD.repeat(9_000);
        let mut linter = Linter::new(Settings::default());
        let mut told = 0;
        let result = lint(&mut linter, NonZeroUsize::new(3).unwrap(), "x", stream.as_bytes(), |_, _| {
            told += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        });
        assert_eq!((result.map_err(|error| error.kind()), told), (Err(io::ErrorKind::BrokenPipe), 1));
    }
}
