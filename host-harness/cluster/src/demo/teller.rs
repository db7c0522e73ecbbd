//! The terminal: everything that is said goes through one thread, so that it comes out in order and nobody
//! waits for a slow reader.

use std::io::Write as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};

use super::deed::{Fact, Who};
use super::timeline::{Check, Gatherer, Line};

/// What is printed is at most so wide.
const WIDTH: usize = 110;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

enum Said {
    Fact(Fact),
    Text(String),
}

/// Says things, from any thread.
pub struct Teller {
    sender: Sender<Said>,
    thread: JoinHandle<Vec<Line>>,
}

impl Teller {
    /// A teller whose time counts from here.
    pub fn start(start: Instant) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, thread: std::thread::spawn(move || tell(start, &receiver)) }
    }

    /// Tells of something that was done, in one line with what belongs to it.
    pub fn fact(&self, fact: Fact) {
        self.say(Said::Fact(fact));
    }

    /// Says this after all that was told before.
    pub fn text(&self, text: String) {
        self.say(Said::Text(text));
    }

    fn say(&self, said: Said) {
        // It listens until this is dropped, or it panicked, which `end` tells.
        let _ = self.sender.send(said);
    }

    /// Says what is left, and returns the lines that were told.
    pub fn end(self) -> Vec<Line> {
        drop(self.sender);
        self.thread.join().unwrap_or_default()
    }
}

fn tell(start: Instant, receiver: &Receiver<Said>) -> Vec<Line> {
    let mut gatherer = Gatherer::default();
    let mut told = Vec::new();
    let mut print = |lines: Vec<Line>| {
        for line in lines {
            write(&say(&line));
            told.push(line);
        }
    };
    loop {
        let said = match gatherer.next() {
            Some(due) => receiver.recv_timeout(due.saturating_sub(start.elapsed())),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match said {
            Ok(Said::Fact(fact)) => gatherer.add(fact),
            Ok(Said::Text(text)) => {
                print(gatherer.flush());
                write(&text);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                print(gatherer.flush());
                return told;
            }
        }
        print(gatherer.due(start.elapsed()));
    }
}

/// That nobody reads any more is no reason to stop checking.
fn write(text: &str) {
    let mut out = anstream::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line of the timeline.
fn say(line: &Line) -> String {
    let style = match line.who {
        Who::Demo => DIM,
        Who::User => BOLD,
        who if who.is_ours() => AnsiColor::Cyan.on_default().bold(),
        Who::Scheduler => AnsiColor::Yellow.on_default(),
        Who::Kubelets => AnsiColor::Green.on_default(),
        _ => Style::new(),
    };
    let time = seconds(line.at);
    // The two columns before the text.
    let indent = 2 + 7 + 3 + 24;
    let text = wrapped(&line.text, indent, WIDTH);
    format!("  {DIM}{time:>7}{DIM:#}   {style}{:<24}{style:#}{text}", line.who.as_str())
}

/// The name of a scene, and what is going to happen.
pub fn opening(number: usize, of: usize, title: &str, intro: &str) -> String {
    format!("\n{BOLD}{number}/{of}  {title}{BOLD:#}\n     {}\n", wrapped(intro, 5, WIDTH))
}

/// What was checked.
pub fn checked(check: &Check) -> String {
    let (style, mark) = if check.holds { (GOOD, '✓') } else { (BAD, '✗') };
    let not = if check.holds { "" } else { "NOT SO: " };
    format!("     {style}{mark} {not}{style:#}{}", wrapped(&check.what, 7, WIDTH))
}

/// A heading.
pub fn heading(text: &str) -> String {
    format!("{BOLD}{text}{BOLD:#}")
}

/// The last word.
pub fn verdict(good: bool, text: &str) -> String {
    let style = if good { GOOD.bold() } else { BAD };
    format!("{style}{text}{style:#}")
}

/// A time with two places.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// A text whose lines after the first begin at this column.
fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::deed::Deed;

    #[test]
    fn a_long_text_goes_on_below_its_beginning() {
        assert_eq!(wrapped("one two three four", 2, 10), "one two\n  three\n  four");
        assert_eq!(wrapped("much-too-long a", 2, 6), "much-too-long\n  a");
    }

    #[test]
    fn what_does_not_hold_is_said_so_without_colours_too() {
        let check = |holds| Check { what: "all are ready".to_owned(), holds };
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain(checked(&check(true))), "     ✓ all are ready");
        assert_eq!(plain(checked(&check(false))), "     ✗ NOT SO: all are ready");
    }

    #[test]
    fn facts_that_came_before_a_text_are_told_before_it_and_kept() {
        let teller = Teller::start(Instant::now());
        for item in ["web-0", "web-1"] {
            let fact = Fact {
                at: Duration::ZERO,
                who: Who::StatefulSets,
                deed: Deed::Creates,
                set: "web".to_owned(),
                item: item.to_owned(),
            };
            teller.fact(fact);
        }
        let lines = teller.end();
        assert_eq!(lines.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["creates web-0, web-1"]);
    }
}
