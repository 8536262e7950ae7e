//! Time limits for tests that share the machine with others.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval between two readings of the load.
const INTERVAL: Duration = Duration::from_millis(10);

/// Measures how long something takes, and how many processes want to run meanwhile.
pub(crate) struct Stopwatch {
    began: Instant,
    stop: Sender<()>,
    load: JoinHandle<f64>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let (stop, stopped) = mpsc::channel();
        let load = thread::spawn(move || {
            let (mut sum, mut count) = (runnable(), 1.0);
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                sum += runnable();
                count += 1.0;
            }
            sum / count
        });
        Self {
            began: Instant::now(),
            stop,
            load,
        }
    }

    /// Checks that at most this time has passed. If more processes wanted to run than there are
    /// cores, the limit is longer by that factor.
    #[track_caller]
    pub(crate) fn assert_within(self, what: &str, limit: Duration) {
        let took = self.began.elapsed();
        self.stop.send(()).unwrap();
        let load = self.load.join().unwrap();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let factor = (load / f64::from(u32::try_from(cores).unwrap())).max(1.0);
        let limit = limit.mul_f64(factor);
        assert!(took < limit, "{what}: took {took:?}, limit {limit:?}");
    }
}

/// Returns the number of processes that run or wait for a core, without this thread. Systems without
/// `/proc` report none.
fn runnable() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let field = text.split(' ').nth(3).and_then(|it| it.split_once('/'));
    let count = field.and_then(|(running, _)| running.parse::<f64>().ok());
    count.map_or(0.0, |count| count - 1.0)
}
