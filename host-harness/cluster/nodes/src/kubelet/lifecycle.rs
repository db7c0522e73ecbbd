//! What happens to a pod on its node, and when.
//!
//! Stands for the pod workers: containers start, become ready, and stop when the pod is deleted; then
//! the pod gets a terminal phase and the final DELETE. Left out: init containers and their order,
//! probes, restarts, crashes, readiness gates, volumes, eviction by the kubelet, and whether claims
//! are reserved for the pod.

use std::time::Duration;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From being seen on a node to running.
    pub start: Duration,
    /// From running to ready.
    pub ready: Duration,
    /// From being seen deleted to having stopped, at most the grace period.
    pub shutdown: Duration,
    /// What a second of a grace period is shortened to.
    pub grace_second: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            start: Duration::from_millis(20),
            ready: Duration::from_millis(20),
            shutdown: Duration::from_millis(50),
            grace_second: Duration::from_millis(20),
        }
    }
}

/// What the API says of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing runs yet.
    Pending,
    /// Its containers run.
    Running {
        /// Whether it is ready, too.
        ready: bool,
    },
    /// It succeeded or failed.
    Done,
}

/// A pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How far it is.
    pub phase: Phase,
    /// Its grace period in seconds, where it is being deleted.
    pub deleting: Option<u32>,
}

/// Since when a pod is as it is. Times count from the start of the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    stage: Stage,
    since: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    Started,
    Ready,
    Stopping,
}

/// What is done to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its containers run from now on.
    Run,
    /// It is ready from now on.
    Ready,
    /// Its containers have stopped.
    Stop,
    /// It is removed for good.
    Remove,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This, now.
    Now(Step),
    /// Something, at this time.
    At(Duration),
    /// Nothing, until something changes.
    Nothing,
}

/// What is next for a pod, and what to remember of it.
pub fn next(seen: Seen, memory: Option<Memory>, now: Duration, timings: &Timings) -> (Memory, Next) {
    let stage = match (seen.deleting, seen.phase) {
        (Some(_), _) => Stage::Stopping,
        (None, Phase::Pending) => Stage::Starting,
        (None, Phase::Running { ready: false }) => Stage::Started,
        (None, Phase::Running { ready: true } | Phase::Done) => Stage::Ready,
    };
    let memory = memory.filter(|memory| memory.stage == stage).unwrap_or(Memory { stage, since: now });
    let due = |takes: Duration, step| {
        let at = memory.since.saturating_add(takes);
        if at <= now { Next::Now(step) } else { Next::At(at) }
    };
    let next = match (seen.deleting, seen.phase) {
        // What never ran, and what has stopped, is not waited for.
        (Some(_), Phase::Pending | Phase::Done) => Next::Now(Step::Remove),
        (Some(grace), Phase::Running { .. }) => {
            due(timings.shutdown.min(timings.grace_second.saturating_mul(grace)), Step::Stop)
        }
        (None, Phase::Pending) => due(timings.start, Step::Run),
        (None, Phase::Running { ready: false }) => due(timings.ready, Step::Ready),
        (None, _) => Next::Nothing,
    };
    (memory, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMINGS: Timings = Timings {
        start: Duration::from_secs(2),
        ready: Duration::from_secs(3),
        shutdown: Duration::from_secs(10),
        grace_second: Duration::from_millis(500),
    };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn seen(phase: Phase, deleting: Option<u32>) -> Seen {
        Seen { phase, deleting }
    }

    #[test]
    fn a_pod_runs_and_is_ready_after_the_time_that_each_takes() {
        let pending = seen(Phase::Pending, None);
        let (memory, first) = next(pending, None, at(5), &TIMINGS);
        assert_eq!(first, Next::At(at(7)));
        assert_eq!(next(pending, Some(memory), at(7), &TIMINGS).1, Next::Now(Step::Run));
        let running = seen(Phase::Running { ready: false }, None);
        let (memory, then) = next(running, Some(memory), at(7), &TIMINGS);
        assert_eq!(then, Next::At(at(10)));
        assert_eq!(next(running, Some(memory), at(11), &TIMINGS).1, Next::Now(Step::Ready));
        assert_eq!(next(seen(Phase::Running { ready: true }, None), Some(memory), at(12), &TIMINGS).1, Next::Nothing);
    }

    #[test]
    fn a_pod_that_is_deleted_stops_after_the_shorter_of_shutdown_and_grace() {
        let table = [(30, at(10)), (4, at(2)), (0, at(0))];
        for (grace, takes) in table {
            let deleted = seen(Phase::Running { ready: true }, Some(grace));
            let (memory, first) = next(deleted, None, at(100), &TIMINGS);
            if takes > at(0) {
                assert_eq!(first, Next::At(at(100) + takes), "grace {grace}");
            }
            assert_eq!(next(deleted, Some(memory), at(100) + takes, &TIMINGS).1, Next::Now(Step::Stop));
        }
    }

    #[test]
    fn a_pod_that_has_stopped_or_never_ran_is_removed_at_once_when_it_is_deleted() {
        for phase in [Phase::Done, Phase::Pending] {
            assert_eq!(next(seen(phase, Some(30)), None, at(1), &TIMINGS).1, Next::Now(Step::Remove));
        }
    }

    #[test]
    fn a_pod_that_is_done_stays_until_it_is_deleted() {
        assert_eq!(next(seen(Phase::Done, None), None, at(1), &TIMINGS).1, Next::Nothing);
    }

    #[test]
    fn deletion_while_starting_starts_its_own_clock() {
        let (memory, _) = next(seen(Phase::Running { ready: false }, None), None, at(0), &TIMINGS);
        let (_, then) = next(seen(Phase::Running { ready: false }, Some(30)), Some(memory), at(50), &TIMINGS);
        assert_eq!(then, Next::At(at(60)));
    }
}
