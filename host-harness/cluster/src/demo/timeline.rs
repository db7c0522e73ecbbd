//! All that was noticed: the scenes, what was done in them as lines, and the lives of the pods.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::deed::{self, Deed, Fact, Who, set_of};

/// What is of one line comes within this time.
pub const TOGETHER: Duration = Duration::from_millis(120);

/// Everything that there is to show.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// What was played, in order.
    pub scenes: Vec<Scene>,
    /// What was done, in order.
    pub lines: Vec<Line>,
    /// Every pod that there was.
    pub lives: Vec<Life>,
}

impl Timeline {
    /// Whether there was something, and all of it was as it should be.
    pub fn is_good(&self) -> bool {
        !self.scenes.is_empty() && self.scenes.iter().all(Scene::is_good)
    }

    /// The StatefulSets in the order of their first pods.
    pub fn sets(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.lives.iter().map(|life| &*life.set).filter(|set| seen.insert(*set)).collect()
    }

    /// When the last thing happened.
    pub fn end(&self) -> Duration {
        let scenes = self.scenes.iter().map(|scene| scene.to);
        let lives = self.lives.iter().filter_map(|life| life.gone);
        scenes.chain(lives).chain(self.lines.iter().map(|line| line.at)).max().unwrap_or_default()
    }
}

/// A scene that was played.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Its name.
    pub title: String,
    /// When it began.
    pub from: Duration,
    /// When it was over.
    pub to: Duration,
    /// What was checked.
    pub checks: Vec<Check>,
}

impl Scene {
    /// Whether something was checked, and everything that was holds.
    pub fn is_good(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.holds)
    }
}

/// A statement, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What should be, with the numbers that were found.
    pub what: String,
    /// Whether it is.
    pub holds: bool,
}

/// Something that was done, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it began, since the start.
    pub at: Duration,
    /// Who did it.
    pub who: Who,
    /// What.
    pub text: String,
}

/// The life of a pod, as far as it was seen. All times count from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Its name.
    pub pod: String,
    /// Its identity: a name may live more than once.
    pub uid: String,
    /// The StatefulSet that it is of.
    pub set: String,
    /// When it came to be.
    pub created: Duration,
    /// When it got a node, and which.
    pub bound: Option<(Duration, String)>,
    /// When its containers ran.
    pub running: Option<Duration>,
    /// When it was ready.
    pub ready: Option<Duration>,
    /// When its deletion began.
    pub deleted: Option<Duration>,
    /// When it was gone.
    pub gone: Option<Duration>,
}

/// Notes what the pods that there are now have newly reached, and tells of those that are ready or gone.
pub fn notice(lives: &mut Vec<Life>, at: Duration, pods: &[Value]) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut there = BTreeSet::new();
    for pod in pods {
        let text = |member: &str| pod["metadata"][member].as_str().unwrap_or_default();
        let (name, uid) = (text("name"), text("uid"));
        there.insert(uid);
        let known = lives.iter().rposition(|life| life.uid == uid);
        let index = known.unwrap_or_else(|| {
            let (pod, set, uid) = (name.to_owned(), set_of(name).to_owned(), uid.to_owned());
            lives.push(Life { pod, uid, set, created: at, ..Life::default() });
            lives.len() - 1
        });
        let life = &mut lives[index];
        if let (None, Some(node)) = (&life.bound, pod["spec"]["nodeName"].as_str()) {
            life.bound = Some((at, node.to_owned()));
        }
        if pod["status"]["phase"] == "Running" {
            life.running.get_or_insert(at);
        }
        let ready = crate::cluster::condition(pod, "Ready").is_some_and(|it| it.0 == "True");
        if ready && life.ready.is_none() {
            life.ready = Some(at);
            facts.push(life.fact(at, Deed::Ready));
        }
        if pod["metadata"]["deletionTimestamp"].is_string() {
            life.deleted.get_or_insert(at);
        }
    }
    for life in lives.iter_mut().filter(|life| life.gone.is_none() && !there.contains(&*life.uid)) {
        life.gone = Some(at);
        life.deleted.get_or_insert(at);
        // What never ran has not stopped either.
        if life.ready.is_some() {
            facts.push(life.fact(at, Deed::Gone));
        }
    }
    facts
}

impl Life {
    fn fact(&self, at: Duration, deed: Deed) -> Fact {
        Fact { at, who: Who::Kubelets, deed, set: self.set.clone(), item: self.pod.clone() }
    }
}

/// Collects facts that are said in one line.
#[derive(Debug, Default)]
pub struct Gatherer(Vec<(Fact, Vec<String>)>);

impl Gatherer {
    /// Takes one more fact.
    pub fn add(&mut self, fact: Fact) {
        let same = |(other, _): &&mut (Fact, Vec<String>)| {
            (other.who, &other.deed, &other.set) == (fact.who, &fact.deed, &fact.set)
        };
        if let Some((_, items)) = self.0.iter_mut().find(same) {
            items.push(fact.item);
        } else {
            let items = vec![fact.item.clone()];
            self.0.push((fact, items));
        }
    }

    /// When the next line is due.
    pub fn next(&self) -> Option<Duration> {
        self.0.first().map(|(fact, _)| fact.at + TOGETHER)
    }

    /// The lines that are due by now.
    pub fn due(&mut self, now: Duration) -> Vec<Line> {
        let open = self.0.iter().position(|(fact, _)| fact.at + TOGETHER > now).unwrap_or(self.0.len());
        self.0.drain(..open).map(line).collect()
    }

    /// All lines.
    pub fn flush(&mut self) -> Vec<Line> {
        self.0.drain(..).map(line).collect()
    }
}

fn line((fact, items): (Fact, Vec<String>)) -> Line {
    Line { at: fact.at, who: fact.who, text: deed::say(&fact.deed, &fact.set, &items) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn fact(at: u64, deed: Deed, item: &str) -> Fact {
        Fact { at: ms(at), who: Who::Scheduler, deed, set: "web".to_owned(), item: item.to_owned() }
    }

    #[test]
    fn a_life_is_noted_step_by_step_and_each_step_once() {
        let mut lives = Vec::new();
        let pod = json!({ "metadata": { "name": "web-0", "uid": "u" } });
        let mut bound = pod.clone();
        bound["spec"]["nodeName"] = "n1".into();
        let mut running = bound.clone();
        running["status"]["phase"] = "Running".into();
        let mut ready = running.clone();
        ready["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
        let mut deleted = ready.clone();
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let mut deeds = Vec::new();
        for (at, pods) in
            [(1, vec![pod]), (2, vec![bound]), (3, vec![running]), (4, vec![ready]), (5, vec![deleted]), (6, vec![])]
        {
            for again in [0, 100] {
                deeds.extend(notice(&mut lives, ms(at + again), &pods).into_iter().map(|fact| fact.deed));
            }
        }
        let expected = Life {
            pod: "web-0".to_owned(),
            uid: "u".to_owned(),
            set: "web".to_owned(),
            created: ms(1),
            bound: Some((ms(2), "n1".to_owned())),
            running: Some(ms(3)),
            ready: Some(ms(4)),
            deleted: Some(ms(5)),
            gone: Some(ms(6)),
        };
        assert_eq!(lives, [expected]);
        assert_eq!(deeds, [Deed::Ready, Deed::Gone]);
    }

    #[test]
    fn a_pod_of_the_same_name_is_another_life() {
        let mut lives = Vec::new();
        let pod = |uid: &str| json!({ "metadata": { "name": "web-0", "uid": uid } });
        notice(&mut lives, ms(1), &[pod("a")]);
        notice(&mut lives, ms(2), &[pod("b")]);
        assert_eq!(lives.len(), 2);
        assert_eq!((lives[0].gone, lives[1].gone), (Some(ms(2)), None));
    }

    #[test]
    fn what_belongs_together_is_one_line_and_lines_stay_in_order() {
        let mut gatherer = Gatherer::default();
        gatherer.add(fact(0, Deed::Creates, "web-0"));
        gatherer.add(fact(10, Deed::Binds, "n1"));
        gatherer.add(fact(20, Deed::Creates, "web-1"));
        assert_eq!(gatherer.next(), Some(TOGETHER));
        assert_eq!(gatherer.due(ms(100)), []);
        let texts = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
        assert_eq!(texts(gatherer.due(TOGETHER)), ["creates web-0, web-1"]);
        assert_eq!(texts(gatherer.flush()), ["places 1 pod of web: n1"]);
        assert_eq!(gatherer.next(), None);
    }

    #[test]
    fn without_a_check_nothing_is_good() {
        let scene = |checks| Scene { checks, ..Scene::default() };
        let check = |holds| Check { what: String::new(), holds };
        let good = |scenes| Timeline { scenes, ..Timeline::default() }.is_good();
        assert!(good(vec![scene(vec![check(true)])]));
        assert!(!good(vec![scene(vec![check(true)]), scene(vec![check(true), check(false)])]));
        assert!(!good(vec![scene(vec![])]));
        assert!(!good(vec![]));
    }
}
