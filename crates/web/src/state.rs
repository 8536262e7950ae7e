//! The state that all requests share.

use crate::access::Principal;
use crate::credentials::AccessStore;
use crate::idempotency::StoredRequests;
use crate::limits::RequestLimits;
use gt_core::Problem;
use gt_core::caller;
use gt_core::operation::Operation;
use gt_town::{Surroundings, Town};
use serde_json::Value;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::sync::{Semaphore, watch};

/// Maximum number of operations that run at the same time.
const MAX_RUNNING: usize = 32;

/// Runs the command of an operation, in this process.
pub trait OperationRunner: fmt::Debug + Send + Sync + 'static {
    /// Runs `gt` with these arguments on behalf of the caller. Blocks.
    fn run(
        &self,
        operation: &Operation,
        arguments: Vec<String>,
        principal: &Principal,
    ) -> Result<OperationOutput, Problem>;
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct OperationOutput {
    pub exit_code: u8,
    pub document: Value,
}

/// A town that is opened for each request, because its settings may change.
#[derive(Clone, Debug)]
pub struct TownPlace {
    pub root: PathBuf,
    pub around: Surroundings,
}

impl TownPlace {
    /// Opens the town on behalf of a caller.
    pub fn open_for(&self, principal: &Principal) -> Result<Town, Problem> {
        let mut around = self.around.clone();
        let caller = principal.caller_name(&around);
        around.env.insert(caller::VARIABLE.to_owned(), caller);
        Town::open(&self.root, around)
    }

    /// Opens the town on behalf of the person.
    pub(crate) fn open_for_person(&self) -> Result<Town, Problem> {
        let mut around = self.around.clone();
        let person = around.login_name().to_owned();
        around.env.insert(caller::VARIABLE.to_owned(), person);
        Town::open(&self.root, around)
    }

    pub(crate) fn open(&self) -> Result<Town, Problem> {
        Town::open(&self.root, self.around.clone())
    }
}

/// The state of the service.
#[derive(Debug)]
pub struct ApiState {
    pub(crate) place: TownPlace,
    pub(crate) runner: Box<dyn OperationRunner>,
    pub(crate) access: AccessStore,
    pub(crate) requests: StoredRequests,
    pub(crate) limits: RequestLimits,
    pub(crate) running: Semaphore,
    /// The TCP address, if there is one.
    pub(crate) listen: Option<SocketAddr>,
    /// Changes when the log of events grows.
    grown: watch::Sender<u64>,
    /// Whether the service ends.
    closing: watch::Sender<bool>,
}

impl ApiState {
    pub fn new(
        place: TownPlace,
        runner: Box<dyn OperationRunner>,
        listen: Option<SocketAddr>,
    ) -> Result<Self, Problem> {
        Ok(ApiState {
            access: AccessStore::in_town(&place.root),
            requests: StoredRequests::in_town(&place.root)?,
            limits: RequestLimits::default(),
            running: Semaphore::new(MAX_RUNNING),
            place,
            runner,
            listen,
            grown: watch::Sender::new(0),
            closing: watch::Sender::new(false),
        })
    }

    /// Reports that the log of events has grown.
    pub fn wake_events(&self) {
        self.grown
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Ends all streams, so that the service can end.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) fn growth(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    /// Waits until the service ends.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives as long as the state.
        let _ = closing.wait_for(|closing| *closing).await;
    }
}
