//! The demo, as it is started, with what it says and what it draws.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cluster::demo::scenes::SCENES;

/// A file of this test, which is removed with this.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("statefulset-scheduling-{}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // That it was never written is told elsewhere.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demo")).args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// The values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn with_an_annotation_the_demo_checks_every_scene_in_time_and_draws_all_nodes_and_pods() {
    plays("1.37");
}

#[test]
fn with_the_field_the_demo_checks_every_scene_in_time_and_draws_all_nodes_and_pods() {
    plays("kep");
}

fn plays(profile: &str) {
    let file = File::new(&format!("{profile}.html"));
    let path = file.0.to_str().expect("the path is text");
    let start = Instant::now();
    let output = demo(&["--profile", profile, "--html", path]);
    let took = start.elapsed();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(took < Duration::from_secs(30), "it took {took:?}");
    assert!(!said.contains('\u{1b}'), "there are colours where there is no terminal");

    let summary = said.split("What was checked").nth(1).expect("there is a summary");
    for scene in &SCENES {
        let after =
            summary.split(scene.title).nth(1).unwrap_or_else(|| panic!("{} is missing: {summary}", scene.title));
        let checks = after.lines().skip(1).take_while(|line| !line.is_empty());
        assert!(checks.clone().count() > 0 && !after.contains('✗'), "{}: {after}", scene.title);
    }
    assert!(summary.contains("8 scenes, ") && summary.contains("and nothing is left."), "{summary}");
    assert!(summary.contains("API requests; ") && summary.contains("evaluations of the policy module; "), "{summary}");

    let page = std::fs::read_to_string(&file.0).expect("the picture is written");
    assert_eq!(values(&page, "data-node"), ["node-1", "node-2", "node-3", "node-4"]);
    let bars: Vec<_> = page.lines().filter(|line| line.starts_with("<g class=\"pod bar ")).collect();
    let uids: BTreeSet<_> = bars.iter().flat_map(|bar| values(bar, "data-uid")).collect();
    let lived = summary.split(" pods lived").next().and_then(|before| before.split_whitespace().last());
    assert_eq!(lived, Some(bars.len().to_string().as_str()), "a bar for each pod");
    assert_eq!(uids.len(), bars.len(), "a pod for each bar");
    for scene in &SCENES {
        assert!(page.contains(&format!("<strong>{}</strong>", scene.title)), "{} is missing", scene.title);
    }
}

#[test]
fn a_scene_that_does_not_go_as_it_should_fails_the_demo() {
    let output = demo(&["--without-policies", "--patience", "2"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // What happens without an intent needs no policy.
    assert!(said.contains("FAILED: All or nothing: no deadlock"), "{said}");
    assert!(said.contains("✗ NOT SO: "), "{said}");
}
