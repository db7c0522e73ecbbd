//! Measures `lint` on a long stream: its time against that of the parser alone, and its memory.
//!
//! `cargo bench -p kubectl-sts-scheduling --bench lint`; over a bound is an error.

use std::io::{BufReader, Cursor, Read};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kubectl_sts_scheduling::documents::Documents;
use kubectl_sts_scheduling::finding::Finding;
use kubectl_sts_scheduling::lint::{Linter, Totals};
use kubectl_sts_scheduling::parallel;
use saphyr_parser::Parser;
use statefulset_scheduling_core::admission::Settings;

/// How many documents the stream has.
const DOCUMENTS: usize = 10_000;
/// The most that `lint` may take, as a ratio to the parser's time.
const MAX_RATIO: f64 = 1.3;
/// How much more memory a stream of ten times the length may take.
const MAX_GROWTH_KIB: u64 = 1024;
/// How often each is measured; the fastest counts, since nothing makes it faster than it is.
const ROUNDS: usize = 15;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/");

fn main() -> ExitCode {
    let other = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  labels: {app: web}\nspec:\n  selector:\n    \
                 app: web\n  ports:\n  - name: http\n    port: 80\n    targetPort: http\n";
    let valid = ["kep/annotation/my-db.yaml", "kep/field/my-db.yaml", "kep/annotation/zookeeper.yaml"].map(statefulset);
    let plain = ["real-world/etcd.yaml", "real-world/kafka.yaml", "real-world/redis.yaml"].map(statefulset);
    let refused = ["refusals/gang-needs-parallel.yaml", "refusals/five-claims.yaml"].map(statefulset);
    let mut mixed = vec![other.to_owned(); 12];
    mixed.extend(valid.clone());
    mixed.extend(plain.clone());
    let mut good = true;
    // Bounds on memory come first: the streams of the others are held as a whole.
    good &= memory(&mixed);
    println!("\n{:<34} {:>9} {:>10} {:>10} {:>7}   bound", "10,000 documents", "MiB", "parse ms", "lint ms", "ratio");
    let all = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    good &= time("as a chart has them", &mixed, all, Some(MAX_RATIO));
    good &= time("StatefulSets without an intent", &plain, all, Some(MAX_RATIO));
    good &= time("StatefulSets with an intent", &valid, all, Some(MAX_RATIO));
    // Told, and not bounded: what each finding costs, and what one thread takes. An annotation is YAML inside of
    // YAML, which the parser alone does not look into.
    time("StatefulSets that are refused", &refused, all, None);
    time("as a chart has them, one thread", &mixed, NonZeroUsize::MIN, None);
    time("with an intent, one thread", &valid, NonZeroUsize::MIN, None);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The StatefulSet of a fixture, as a document of a stream.
fn statefulset(name: &str) -> String {
    let text = std::fs::read_to_string(format!("{FOLDER}{name}")).expect("the fixture is there");
    let mut documents = Documents::new(text.as_bytes());
    while let Some(document) = documents.read().expect("a text can be read") {
        let text = String::from_utf8_lossy(document.text);
        if text.contains("kind: StatefulSet") {
            return format!("---\n{}", text.trim_start_matches("---\n"));
        }
    }
    panic!("{name} has no StatefulSet");
}

fn lint(stream: impl Read, threads: NonZeroUsize) -> Totals {
    let mut linter = Linter::new(Settings::default());
    let mut seen = 0_usize;
    let told = |findings: &[Finding], _: &Totals| {
        seen += findings.iter().map(|finding| finding.message.len()).sum::<usize>();
        Ok(())
    };
    let stream = BufReader::with_capacity(1 << 16, stream);
    parallel::lint(&mut linter, threads, "-", stream, told).expect("a stream in memory can be read");
    std::hint::black_box(seen);
    linter.totals
}

fn timed(what: impl FnOnce()) -> Duration {
    let started = Instant::now();
    what();
    started.elapsed()
}

/// Whether the ratio is within its bound.
fn time(name: &str, documents: &[String], threads: NonZeroUsize, bound: Option<f64>) -> bool {
    let stream: String = documents.iter().cycle().take(DOCUMENTS).map(String::as_str).collect();
    assert_eq!(lint(stream.as_bytes(), threads).documents, DOCUMENTS, "{name}");
    // By turns, so that what else the machine does is shared between them.
    let (mut parsing, mut linting) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        parsing = parsing.min(timed(|| {
            let events = Parser::new_from_str(&stream).flatten().count();
            std::hint::black_box(events);
        }));
        linting = linting.min(timed(|| {
            std::hint::black_box(lint(stream.as_bytes(), threads));
        }));
    }
    let ratio = linting.as_secs_f64() / parsing.as_secs_f64();
    let tenths = (stream.len() * 10) >> 20;
    let mib = format!("{}.{}", tenths / 10, tenths % 10);
    let told = bound.map_or_else(String::new, |bound| bound.to_string());
    println!(
        "{name:<34} {mib:>9} {:>10.1} {:>10.1} {ratio:>7.2}   {told}",
        parsing.as_secs_f64() * 1e3,
        linting.as_secs_f64() * 1e3
    );
    bound.is_none_or(|bound| ratio <= bound)
}

/// Documents over and over, without ever being in memory as a whole.
struct Endless<'a> {
    documents: std::iter::Take<std::iter::Cycle<std::slice::Iter<'a, String>>>,
    current: Cursor<&'a [u8]>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let Some(next) = self.documents.next() else { return Ok(0) };
            self.current = Cursor::new(next.as_bytes());
        }
    }
}

/// The most memory that the process has had, in KiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Whether memory stays what it is when the stream gets longer.
fn memory(documents: &[String]) -> bool {
    let run = |count: usize| {
        let documents = documents.iter().cycle().take(count);
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let totals = lint(Endless { documents, current: Cursor::new(&[]) }, threads);
        assert_eq!(totals.documents, count);
        peak()
    };
    println!("{:<34} {:>9}", "documents in the stream", "peak KiB");
    let (Some(short), Some(long)) = (run(DOCUMENTS), run(DOCUMENTS * 10)) else {
        println!("this system does not tell of its memory: not measured");
        return true;
    };
    println!("{DOCUMENTS:<34} {short:>9}\n{:<34} {long:>9}   bound {}", DOCUMENTS * 10, short + MAX_GROWTH_KIB);
    long <= short + MAX_GROWTH_KIB
}
