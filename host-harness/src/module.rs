//! The module in wasmtime, as Kubewarden runs it: compiled once, a fresh instance for each
//! evaluation, a 512 KiB stack, two seconds; and, unlike Kubewarden, with a memory limit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use wapc::WapcHost;
use wasmtime::{Engine, Module};
use wasmtime_provider::{EpochDeadlines, ResourceLimits, WasmtimeEngineProviderBuilder, WasmtimeEngineProviderPre};

/// The engine's stack for WebAssembly, in bytes.
pub const MAX_WASM_STACK: usize = 512 * 1024;
/// The most memory that an instance may take, in bytes.
pub const MAX_MEMORY: usize = 32 * 1024 * 1024;
/// How long an evaluation may take, counted in ticks of a second: between one and two seconds.
const DEADLINE_TICKS: u64 = 2;
const TICK: Duration = Duration::from_secs(1);

/// Why the module gives no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no module that the engine can load.
    #[error("the module cannot be loaded: {0}")]
    Load(String),
    /// It cannot be instantiated.
    #[error("the module cannot be instantiated: {0}")]
    Instantiate(String),
    /// The guest reported an error, trapped, or ran out of time or memory.
    #[error("{0}")]
    Guest(String),
    /// Its answer is not what was expected.
    #[error("the module's answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
}

/// A call of the guest to its host.
#[derive(Clone, Copy, Debug)]
pub struct HostCall<'a> {
    /// `kubewarden`
    pub binding: &'a str,
    /// The capability: `kubernetes`, `tracing`, ….
    pub namespace: &'a str,
    /// The operation of the capability.
    pub operation: &'a str,
    /// The operation's arguments.
    pub payload: &'a [u8],
}

/// Answers host calls: bytes, or the text of an error.
pub type Host = dyn Fn(&HostCall<'_>) -> Result<Vec<u8>, String> + Send + Sync;

/// A host that grants nothing, as one without a cluster.
pub fn not_granted() -> Arc<Host> {
    Arc::new(|call| {
        Err(format!("Policy has not been granted access to {}/{}/{}", call.binding, call.namespace, call.operation))
    })
}

/// The compiled module.
pub struct Policy {
    instances: WasmtimeEngineProviderPre,
    clock: Clock,
}

impl Policy {
    /// Loads the module of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no module that the engine can load.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.display().to_string(), source })?;
        Self::new(&bytes)
    }

    /// Loads a module.
    ///
    /// # Errors
    /// The bytes are no module that the engine can load.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        let load = |error: &dyn std::fmt::Display| Error::Load(error.to_string());
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true).max_wasm_stack(MAX_WASM_STACK);
        let engine = Engine::new(&config).map_err(|error| load(&error))?;
        let module = Module::new(&engine, bytes).map_err(|error| load(&error))?;
        let instances = WasmtimeEngineProviderBuilder::new()
            .engine(engine.clone())
            .module(module)
            .enable_epoch_interruptions(EpochDeadlines { wapc_init: DEADLINE_TICKS, wapc_func: DEADLINE_TICKS })
            .enable_resource_limits(ResourceLimits { max_memory_size: Some(MAX_MEMORY), max_table_elements: None })
            .build_pre()
            .map_err(|error| load(&error))?;
        Ok(Self { instances, clock: Clock::start(engine) })
    }

    /// Calls an operation in a fresh instance, without a cluster behind it.
    ///
    /// # Errors
    /// The instance cannot be made, or the guest gives no answer.
    pub fn call(&self, operation: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.call_with(operation, payload, not_granted())
    }

    /// Calls an operation in a fresh instance whose host calls `host` answers.
    ///
    /// # Errors
    /// The instance cannot be made, or the guest gives no answer.
    pub fn call_with(&self, operation: &str, payload: &[u8], host: Arc<Host>) -> Result<Vec<u8>, Error> {
        self.instance(host)?.call(operation, payload).map_err(|error| Error::Guest(error.to_string()))
    }

    fn instance(&self, host: Arc<Host>) -> Result<WapcHost, Error> {
        debug_assert!(!self.clock.stopped.load(Ordering::Relaxed));
        let instantiate = |error: &dyn std::fmt::Display| Error::Instantiate(error.to_string());
        let deadlines = EpochDeadlines { wapc_init: DEADLINE_TICKS, wapc_func: DEADLINE_TICKS };
        let provider = self.instances.rehydrate(Some(deadlines)).map_err(|error| instantiate(&error))?;
        let callback = move |_, binding: &str, namespace: &str, operation: &str, payload: &[u8]| {
            let call = HostCall { binding, namespace, operation, payload };
            // The engine puts these words before each error.
            host(&call).map_err(|error| format!("Callback evaluation failure: {error}").into())
        };
        WapcHost::new(Box::new(provider), Some(Box::new(callback))).map_err(|error| instantiate(&error))
    }

    /// Asks the core, in the module, a query of `statefulset_scheduling_core::query`.
    ///
    /// # Errors
    /// The module gives no answer, or another one than expected.
    pub fn query<T: DeserializeOwned>(&self, query: &Value) -> Result<T, Error> {
        Ok(serde_json::from_slice(&self.call("query", query.to_string().as_bytes())?)?)
    }
}

/// Ticks for the deadline of evaluations, until it is dropped.
struct Clock {
    stopped: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Clock {
    fn start(engine: Engine) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopped);
        let ticker = std::thread::spawn(move || {
            while !seen.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                engine.increment_epoch();
            }
        });
        Self { stopped, ticker: Some(ticker) }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // The ticker does nothing that can panic.
            let _ = ticker.join();
        }
    }
}
