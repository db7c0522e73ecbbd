//! The timeline as a page: one file with an inline picture, its nodes as rows and its pods as bars, and the
//! same as tables for whoever cannot see it. No script, and nothing from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::teller::seconds;
use super::timeline::{Life, Timeline};

/// Where the time begins, after the names of the rows.
const LEFT: f64 = 118.0;
/// How wide a second is.
const SECOND: f64 = 88.0;
/// Above the rows stand the scenes.
const TOP: f64 = 44.0;
/// Between rows.
const GAP: f64 = 10.0;
/// What is shorter is not seen.
const SPECK: Duration = Duration::from_millis(40);
/// The hues of the StatefulSets, in degrees, neighbours far apart.
const HUES: [u32; 10] = [210, 30, 140, 285, 0, 180, 55, 320, 250, 100];

/// A row of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The node.
    pub node: String,
    /// Where it stands.
    pub rack: String,
}

/// A piece of a pod's life in a row, as times since the start.
struct Piece<'a> {
    life: &'a Life,
    from: Duration,
    to: Duration,
}

/// The page.
pub fn html(timeline: &Timeline, rows: &[Row]) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    let _ = page(&mut out, timeline, rows);
    out
}

fn page(out: &mut String, timeline: &Timeline, rows: &[Row]) -> std::fmt::Result {
    let verdict = if timeline.is_good() { "everything that was checked holds" } else { "something does not hold" };
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>StatefulSets that are scheduled as a whole</title>\n<style>{STYLE}{hues}</style>\n</head>\n<body>\n\
         <h1>StatefulSets that are scheduled as a whole</h1>\n\
         <p>{scenes} scenes on one cluster of {nodes} nodes, in {total}; {verdict}. Each row is a node with room for two \
         pods, and each bar is a pod: pale while it starts or stops, full while it runs. Below the nodes are pods that \
         wait for one.</p>\n",
        hues = hues(),
        scenes = timeline.scenes.len(),
        nodes = rows.len(),
        total = seconds(timeline.end()),
    )?;
    legend(out, timeline)?;
    out.push_str("<div class=\"scroll\">\n");
    picture(out, timeline, rows)?;
    out.push_str("</div>\n");
    scenes(out, timeline)?;
    tables(out, timeline)?;
    out.push_str("</body>\n</html>\n");
    Ok(())
}

const STYLE: &str = "
:root { color-scheme: light dark; --fg: #1c1e21; --bg: #fff; --dim: #62676e; --line: #d4d8dd; --band: #f3f5f7; --l: 70%; --s: 62%; --good: #18794e; --bad: #c62a2f; }
@media (prefers-color-scheme: dark) { :root { --fg: #e8eaed; --bg: #16181b; --dim: #9aa0a8; --line: #3a3f45; --band: #1e2125; --l: 38%; --s: 48%; --good: #4cc38a; --bad: #ff8f8f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 2rem auto; padding: 0 1rem; max-width: 1500px; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
svg { display: block; font: 11px system-ui, sans-serif; }
svg text { fill: var(--fg); } svg .dim { fill: var(--dim); } svg .title { font-weight: 600; }
.band { fill: var(--band); } .axis { stroke: var(--line); } .lane { fill: none; stroke: var(--line); }
.pod rect { fill: hsl(var(--h) var(--s) var(--l)); }
.pod .pale { opacity: .45; } .pod .wait { fill: none; stroke: hsl(var(--h) var(--s) var(--l)); stroke-width: 1.5; stroke-dasharray: 3 2; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
.swatch { display: inline-block; width: .9em; height: .9em; border-radius: 3px; margin-right: .4em; vertical-align: -.1em; background: hsl(var(--h) var(--s) var(--l)); }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: .15rem .9rem .15rem 0; } th { border-bottom: 1px solid var(--line); } .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scenes ul { list-style: none; padding-left: 0; } .yes::before { content: '\\2713  '; color: var(--good); } .no::before { content: '\\2717  not so: '; color: var(--bad); }
summary { cursor: pointer; font-weight: 600; margin-top: 1rem; }
";

fn hues() -> String {
    let rule = |(index, hue): (usize, u32)| format!(".s{index} {{ --h: {hue}; }}\n");
    HUES.into_iter().enumerate().map(rule).collect()
}

fn legend(out: &mut String, timeline: &Timeline) -> std::fmt::Result {
    out.push_str("<ul class=\"legend\" aria-label=\"StatefulSets\">\n");
    for set in timeline.sets() {
        writeln!(out, "<li><span class=\"swatch {}\"></span>{}</li>", class(timeline, set), escape(set))?;
    }
    out.push_str("</ul>\n");
    Ok(())
}

/// The class that colours a StatefulSet.
fn class(timeline: &Timeline, set: &str) -> String {
    let place = timeline.sets().iter().position(|other| *other == set).unwrap_or(0);
    format!("s{}", place % HUES.len())
}

fn x(time: Duration) -> f64 {
    LEFT + time.as_secs_f64() * SECOND
}

fn picture(out: &mut String, timeline: &Timeline, rows: &[Row]) -> std::fmt::Result {
    let end = timeline.end();
    let mut body = String::new();
    let mut y = TOP;
    for row in rows {
        let on_it = timeline.lives.iter().filter_map(|life| {
            let (from, node) = life.bound.as_ref()?;
            (*node == row.node).then(|| Piece { life, from: *from, to: life.gone.unwrap_or(end) })
        });
        let lanes = lanes(on_it.collect());
        let height = lane_height(2) * usize_to_f64(lanes.len().max(2));
        let (node, rack) = (escape(&row.node), escape(&row.rack));
        write!(
            body,
            "<g class=\"node\" data-node=\"{node}\">\n<rect class=\"lane\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" \
             height=\"{height:.1}\"/>\n<text class=\"title\" x=\"10\" y=\"{:.1}\">{node}</text>\n\
             <text class=\"dim\" x=\"10\" y=\"{:.1}\">rack {rack}</text>\n",
            x(end) - LEFT,
            y + height / 2.0 - 2.0,
            y + height / 2.0 + 12.0,
        )?;
        for (index, lane) in lanes.iter().enumerate() {
            for piece in lane {
                bar(&mut body, timeline, piece, y + lane_height(2) * usize_to_f64(index), end)?;
            }
        }
        body.push_str("</g>\n");
        y += height + GAP;
    }
    let waiting = timeline.lives.iter().map(|life| {
        let bound = life.bound.as_ref().map(|(at, _)| *at);
        Piece { life, from: life.created, to: bound.or(life.gone).unwrap_or(end) }
    });
    // What is placed at once would only be specks.
    let long = |piece: &Piece<'_>| piece.to.saturating_sub(piece.from) > SPECK || piece.life.bound.is_none();
    let lanes = lanes(waiting.filter(long).collect());
    let height = lane_height(16) * usize_to_f64(lanes.len().max(2));
    write!(
        body,
        "<g class=\"waiting\">\n<text class=\"title\" x=\"10\" y=\"{:.1}\">no node yet</text>\n",
        y + height / 2.0 + 4.0
    )?;
    for (index, lane) in lanes.iter().enumerate() {
        for piece in lane {
            wait(&mut body, timeline, piece, y + lane_height(16) * usize_to_f64(index))?;
        }
    }
    body.push_str("</g>\n");
    let bottom = y + height + GAP;
    let (width, full) = (x(end) + 20.0, bottom + 24.0);
    write!(
        out,
        "<svg role=\"img\" aria-labelledby=\"picture-title picture-text\" width=\"{width:.0}\" height=\"{full:.0}\" \
         viewBox=\"0 0 {width:.0} {full:.0}\">\n<title id=\"picture-title\">Pods on nodes over time</title>\n\
         <desc id=\"picture-text\">{} pods of {} StatefulSets on {} nodes in {} scenes. The tables below say the same in \
         words.</desc>\n",
        timeline.lives.len(),
        timeline.sets().len(),
        rows.len(),
        timeline.scenes.len(),
    )?;
    bands(out, timeline, bottom)?;
    axis(out, end, bottom)?;
    out.push_str(&body);
    out.push_str("</svg>\n");
    Ok(())
}

/// How high a lane is where there are about so many.
fn lane_height(about: usize) -> f64 {
    if about > 4 { 9.0 } else { 22.0 }
}

#[expect(clippy::cast_precision_loss, reason = "nobody draws so many lanes")]
fn usize_to_f64(n: usize) -> f64 {
    n as f64
}

/// Puts pieces into as few lanes as they need without overlapping visibly: a pod that has stopped makes room
/// a moment before it is gone.
fn lanes(mut pieces: Vec<Piece<'_>>) -> Vec<Vec<Piece<'_>>> {
    pieces.sort_by(|a, b| (a.from, &a.life.pod).cmp(&(b.from, &b.life.pod)));
    let mut lanes: Vec<Vec<Piece<'_>>> = Vec::new();
    for piece in pieces {
        let free = |lane: &&mut Vec<Piece<'_>>| lane.last().is_none_or(|last| last.to <= piece.from + SPECK);
        match lanes.iter_mut().find(free) {
            Some(lane) => lane.push(piece),
            None => lanes.push(vec![piece]),
        }
    }
    lanes
}

/// A pod on its node: pale until it runs, and from when its deletion began.
fn bar(out: &mut String, timeline: &Timeline, piece: &Piece<'_>, y: f64, end: Duration) -> std::fmt::Result {
    let life = piece.life;
    open(out, timeline, life, "bar")?;
    let height = lane_height(2) - 4.0;
    let stops = life.deleted.unwrap_or(end).max(piece.from);
    let runs = life.running.unwrap_or(stops).clamp(piece.from, stops);
    for (class, from, to) in [("pale", piece.from, runs), ("full", runs, stops), ("pale", stops, piece.to)] {
        if to > from {
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height}\"/>",
                x(from),
                y + 2.0,
                x(to) - x(from),
            )?;
        }
    }
    if x(piece.to) - x(piece.from) > 44.0 {
        writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x(piece.from) + 4.0, y + 15.0, escape(&life.pod))?;
    }
    out.push_str("</g>\n");
    Ok(())
}

/// A pod without a node.
fn wait(out: &mut String, timeline: &Timeline, piece: &Piece<'_>, y: f64) -> std::fmt::Result {
    open(out, timeline, piece.life, if piece.life.bound.is_some() { "queue" } else { "bar" })?;
    writeln!(
        out,
        "<rect class=\"wait\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"5\"/>\n</g>",
        x(piece.from),
        y + 2.0,
        (x(piece.to) - x(piece.from)).max(2.0),
    )
}

fn open(out: &mut String, timeline: &Timeline, life: &Life, kind: &str) -> std::fmt::Result {
    writeln!(
        out,
        "<g class=\"pod {kind} {}\" data-pod=\"{}\" data-uid=\"{}\"><title>{}</title>",
        class(timeline, &life.set),
        escape(&life.pod),
        escape(&life.uid),
        escape(&story(life)),
    )
}

/// A life in a sentence.
fn story(life: &Life) -> String {
    let mut text = format!("{}: created at {}", life.pod, seconds(life.created));
    let steps = [
        life.bound.as_ref().map(|(at, node)| format!("on {node} at {}", seconds(*at))),
        life.running.map(|at| format!("running at {}", seconds(at))),
        life.ready.map(|at| format!("ready at {}", seconds(at))),
        life.deleted.map(|at| format!("deleted at {}", seconds(at))),
        life.gone.map(|at| format!("gone at {}", seconds(at))),
    ];
    for step in steps.into_iter().flatten() {
        text.push_str(", ");
        text.push_str(&step);
    }
    text
}

fn bands(out: &mut String, timeline: &Timeline, bottom: f64) -> std::fmt::Result {
    for scene in timeline.scenes.iter().step_by(2) {
        let (from, width) = (x(scene.from), x(scene.to) - x(scene.from));
        writeln!(out, "<rect class=\"band\" x=\"{from:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{bottom:.1}\"/>")?;
    }
    for (index, scene) in timeline.scenes.iter().enumerate() {
        let is_last = index + 1 == timeline.scenes.len();
        let (at, anchor) = if is_last { (x(timeline.end()), "end") } else { (x(scene.from) + 4.0, "start") };
        // The titles stand in two lines by turns, so that they have room.
        let y = [16.0, 32.0][index % 2];
        writeln!(
            out,
            "<text class=\"title\" x=\"{at:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{} {}</text>",
            index + 1,
            escape(&scene.title),
        )?;
    }
    Ok(())
}

fn axis(out: &mut String, end: Duration, bottom: f64) -> std::fmt::Result {
    for second in 0..=end.as_secs() {
        let at = x(Duration::from_secs(second));
        writeln!(
            out,
            "<line class=\"axis\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\"/>\n\
             <text class=\"dim\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{second} s</text>",
            bottom + 15.0,
        )?;
    }
    Ok(())
}

fn scenes(out: &mut String, timeline: &Timeline) -> std::fmt::Result {
    out.push_str("<h2>What was checked</h2>\n<ol class=\"scenes\">\n");
    for scene in &timeline.scenes {
        let took = seconds(scene.to.saturating_sub(scene.from));
        writeln!(out, "<li><strong>{}</strong> ({took})\n<ul>", escape(&scene.title))?;
        for check in &scene.checks {
            writeln!(out, "<li class=\"{}\">{}</li>", if check.holds { "yes" } else { "no" }, escape(&check.what))?;
        }
        out.push_str("</ul></li>\n");
    }
    out.push_str("</ol>\n");
    Ok(())
}

fn tables(out: &mut String, timeline: &Timeline) -> std::fmt::Result {
    out.push_str(
        "<h2>The same in words</h2>\n<details open><summary>What happened</summary>\n<table>\n\
         <thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Who</th><th scope=\"col\">What</th></tr></thead>\n<tbody>\n",
    );
    for line in &timeline.lines {
        let (at, who) = (seconds(line.at), line.who.as_str());
        writeln!(out, "<tr><td class=\"n\">{at}</td><td>{who}</td><td>{}</td></tr>", escape(&line.text))?;
    }
    out.push_str("</tbody>\n</table>\n</details>\n<details><summary>Every pod</summary>\n<table>\n<thead><tr>");
    for column in ["Pod", "Node", "Created", "Placed", "Running", "Ready", "Deleted", "Gone"] {
        write!(out, "<th scope=\"col\">{column}</th>")?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for life in &timeline.lives {
        let node = life.bound.as_ref().map_or("none", |(_, node)| node);
        write!(out, "<tr><td>{}</td><td>{}</td>", escape(&life.pod), escape(node))?;
        let bound = life.bound.as_ref().map(|(at, _)| *at);
        for time in [Some(life.created), bound, life.running, life.ready, life.deleted, life.gone] {
            write!(out, "<td class=\"n\">{}</td>", time.map_or_else(String::new, seconds))?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</details>\n");
    Ok(())
}

fn escape(text: &str) -> String {
    let special = BTreeMap::from([('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")]);
    let mut out = String::new();
    for letter in text.chars() {
        match special.get(&letter) {
            Some(entity) => out.push_str(entity),
            None => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::deed::Who;
    use super::super::timeline::{Check, Line, Scene};
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn life(pod: &str, uid: &str, node: Option<&str>) -> Life {
        Life {
            pod: pod.to_owned(),
            uid: uid.to_owned(),
            set: "a".to_owned(),
            created: ms(100),
            bound: node.map(|node| (ms(200), node.to_owned())),
            running: node.map(|_| ms(300)),
            ready: node.map(|_| ms(700)),
            deleted: None,
            gone: None,
        }
    }

    fn timeline() -> Timeline {
        let checks =
            vec![Check { what: "1 < 2".to_owned(), holds: true }, Check { what: "it is so".to_owned(), holds: false }];
        Timeline {
            scenes: vec![Scene { title: "First & last".to_owned(), from: ms(0), to: ms(2000), checks }],
            lines: vec![Line { at: ms(100), who: Who::Scheduler, text: "places a-0".to_owned() }],
            lives: vec![life("a-0", "u0", Some("n1")), life("a-1", "u1", Some("n1")), life("a-2", "u2", None)],
        }
    }

    fn rows() -> Vec<Row> {
        ["n1", "n2"].map(|node| Row { node: node.to_owned(), rack: "r".to_owned() }).into()
    }

    #[test]
    fn there_is_a_row_for_each_node_and_one_bar_for_each_pod() {
        let page = html(&timeline(), &rows());
        for row in rows() {
            assert_eq!(page.matches(&format!("<g class=\"node\" data-node=\"{}\">", row.node)).count(), 1);
        }
        assert_eq!(page.matches("<g class=\"pod bar ").count(), 3);
        // Those that got a node waited for it visibly, too.
        assert_eq!(page.matches("<g class=\"pod queue ").count(), 2);
    }

    #[test]
    fn pods_that_share_a_node_do_not_overlap() {
        let timeline = timeline();
        let piece = |life, from, to| Piece { life, from: ms(from), to: ms(to) };
        let [a, b, c] = &timeline.lives[..] else { panic!("three lives") };
        let lanes = lanes(vec![piece(b, 0, 1000), piece(a, 0, 510), piece(c, 500, 800)]);
        let names = |lane: &Vec<Piece<'_>>| lane.iter().map(|piece| piece.life.pod.clone()).collect::<Vec<_>>();
        assert_eq!(lanes.iter().map(names).collect::<Vec<_>>(), [vec!["a-0", "a-2"], vec!["a-1"]]);
    }

    #[test]
    fn the_page_says_everything_in_words_too_and_loads_nothing() {
        let page = html(&timeline(), &rows());
        for text in ["<title id=\"picture-title\">", "<desc id=", "places a-0", "First &amp; last", "1 &lt; 2"] {
            assert!(page.contains(text), "{text} is missing");
        }
        assert!(page.contains("<li class=\"no\">it is so</li>") && page.contains("something does not hold"));
        assert!(page.contains("prefers-color-scheme: dark"));
        for foreign in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign} is there");
        }
    }

    #[test]
    fn what_is_special_is_escaped() {
        assert_eq!(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
