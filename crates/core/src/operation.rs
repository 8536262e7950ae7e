//! Operations of the HTTP API: one table ([`TABLE`]) with a row for each route.
//!
//! A row names the method and path, the scope that a caller needs, the capability that an agent
//! needs, the parameters, and the command line that performs the operation. Routes, checks and the
//! OpenAPI document are derived from the row, and the service runs exactly the row's command. An
//! operation without a command ([`Action`]) belongs to the service itself: events, login, the page.

mod parameter;
mod table;

pub use parameter::{OperationParameter, ParameterKind, ParameterPlace, ParameterUse};
pub use table::TABLE;

use crate::capability::Capability;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A route of the API.
#[derive(Debug)]
pub struct Operation {
    /// Unique: the `operationId` of the OpenAPI document.
    pub name: &'static str,
    pub method: HttpMethod,
    /// The path, with parameters as `{name}`.
    pub path: &'static str,
    /// The scope that a token or device needs; `None` for routes without a login.
    pub scope: Option<AccessScope>,
    /// The capability that an agent needs: the one of the command.
    pub capability: Option<Capability>,
    pub action: Action,
    pub parameters: &'static [OperationParameter],
    pub answer: AnswerShape,
    /// One sentence.
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs this command of `gt`: its names and fixed options.
    Command(&'static [&'static str]),
    OpenApi,
    EventPage,
    EventStream,
    WebSocket,
    Caller,
    Login,
    Logout,
    /// A file of the page.
    PageFile,
}

/// The document that an operation returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerShape {
    /// The document of the command.
    Document,
    /// The only element of the command's list.
    Single,
    /// A list, in pages. Elements are identified by this field.
    List(&'static str),
    /// Not JSON.
    Other,
}

/// The operations that a token or device may call. Each scope includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessScope {
    /// Reads.
    Read,
    /// Messages, mail, answers.
    Talk,
    /// Work items; starts and stops of agents; the merge queue.
    Work,
    /// Keys, settings, and the removal of agents.
    Admin,
}

impl HttpMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
        }
    }
}

impl AccessScope {
    pub const ALL: [AccessScope; 4] = [
        AccessScope::Read,
        AccessScope::Talk,
        AccessScope::Work,
        AccessScope::Admin,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            AccessScope::Read => "read",
            AccessScope::Talk => "talk",
            AccessScope::Work => "work",
            AccessScope::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Operation {
    /// Returns whether the operation changes nothing.
    pub fn is_read(&self) -> bool {
        self.method == HttpMethod::Get
    }

    /// Returns the arguments of `gt` for these values, after the name of the program. Fails for an
    /// unknown parameter, a missing one, and a value of the wrong type.
    pub fn arguments(&self, values: &Map<String, Value>) -> Result<Vec<String>, Problem> {
        let Action::Command(words) = self.action else {
            return Err(Problem::failed(format!("{} is not a command", self.name)));
        };
        self.check(values)?;
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut positional = Vec::new();
        for parameter in self.parameters {
            let Some(value) = values.get(parameter.name).filter(|value| !value.is_null()) else {
                continue;
            };
            let texts = parameter.kind.texts(value);
            match parameter.used_as {
                ParameterUse::Positional => positional.extend(texts),
                // One word, so that a value that begins with a dash is not an option.
                ParameterUse::Option(name) => {
                    arguments.extend(texts.iter().map(|text| format!("{name}={text}")));
                }
                ParameterUse::Flag(name) if value == &Value::Bool(true) => {
                    arguments.push(name.to_owned());
                }
                ParameterUse::Flag(_) | ParameterUse::Service => {}
            }
        }
        if !positional.is_empty() {
            arguments.push("--".to_owned());
            arguments.extend(positional);
        }
        Ok(arguments)
    }

    /// Fails for an unknown parameter, a missing one, and a value of the wrong type.
    pub fn check(&self, values: &Map<String, Value>) -> Result<(), Problem> {
        let is_known = |name: &str| self.parameters.iter().any(|one| one.name == name);
        if let Some(name) = values.keys().find(|name| !is_known(name)) {
            let names: Vec<&str> = self.parameters.iter().map(|one| one.name).collect();
            return Err(Problem::usage(format!("{name:?} is not a parameter")).hint(
                match names.is_empty() {
                    true => format!("{} has no parameters", self.name),
                    false => format!("{} has: {}", self.name, names.join(", ")),
                },
            ));
        }
        for parameter in self.parameters {
            match values.get(parameter.name).filter(|value| !value.is_null()) {
                Some(value) => parameter.check(value)?,
                None if parameter.is_required => {
                    let name = parameter.name;
                    return Err(Problem::usage(format!("{name:?} is missing"))
                        .hint(parameter.about.to_owned()));
                }
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
