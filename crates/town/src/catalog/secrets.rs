//! Reads the secret values that a role refers to.

use crate::base::program::{self, RunLimits};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::role::{RoleConfig, SecretSource};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum time for a command that prints a secret; it may ask the person to unlock a store.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The variable that systemd sets for a service with credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Returns the role's secret variables with their values.
pub fn resolve(town: &Town, role: &RoleConfig) -> Result<Vec<(String, String)>> {
    let secrets = role.secrets();
    secrets
        .map(|(name, source)| {
            let value = value(town, source).map_err(|problem| {
                Problem::environment(format!("cannot read the value of {name}"))
                    .caused_by(problem)
                    .hint(format!("see `{name}` under `[env]` in the role's file"))
            })?;
            Ok((name.to_owned(), value))
        })
        .collect()
}

fn value(town: &Town, source: &SecretSource) -> Result<String> {
    match source {
        SecretSource::File(path) => of_file(&expanded(town, path)),
        SecretSource::Command(words) => of_command(town, words),
        SecretSource::Credential(name) => {
            let folder = town.around().var(CREDENTIALS).ok_or_else(|| {
                Problem::environment(format!("{CREDENTIALS} is not set"))
                    .hint("systemd sets it for a service with LoadCredential=")
            })?;
            if name.contains('/') {
                return Err(Problem::usage("the name of a credential has no slash"));
            }
            of_file(&Path::new(folder).join(name))
        }
    }
}

fn expanded(town: &Town, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), town.around().home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => town.root().join(path),
    }
}

fn of_file(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(|error| {
        Problem::environment(format!("cannot read {}", path.display())).caused_by(error)
    })?;
    checked(text)
}

/// Runs the command, without a shell. Its error output is shown; its output never is.
fn of_command(town: &Town, words: &[String]) -> Result<String> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| Problem::usage("the command has no words"))?;
    let around = town.around();
    let path = around.find_program(program).ok_or_else(|| {
        Problem::environment(format!("there is no program {program}"))
            .hint("give its full path, or install it")
    })?;
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_clear()
        .envs(&around.env)
        .stdin(Stdio::null());
    let limits = RunLimits {
        time: Some(TIMEOUT),
        cancel: Some(&around.cancel),
        grace: Some(Duration::from_secs(1)),
    };
    let output = program::output(command, &limits)
        .map_err(|error| Problem::environment(format!("cannot run {program}")).caused_by(error))?
        .map_err(|reason| Problem::failed(format!("{program} was stopped: {reason}")))?;
    if !output.status.success() {
        let problem = Problem::failed(format!("{program} failed ({})", output.status));
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(match error.trim() {
            "" => problem,
            error => problem.cause(error.to_owned()),
        });
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|_| Problem::failed(format!("{program} printed no text")))?;
    checked(text)
}

fn checked(text: String) -> Result<String> {
    let value = text.trim_end_matches(['\n', '\r']);
    match value {
        "" => Err(Problem::failed("it is empty")),
        value if value.contains('\0') => Err(Problem::failed("it contains a null byte")),
        value => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTown;
    use std::collections::BTreeMap;

    fn resolved(town: &Town, text: &str) -> Result<Vec<(String, String)>> {
        let role: RoleConfig = toml::from_str(text).unwrap();
        resolve(town, &role)
    }

    #[test]
    fn values_come_from_files_and_commands() {
        let test = TestTown::new();
        fs::write(test.town.root().join("key"), "s3cret\n").unwrap();
        let text =
            "[env]\nA = 'plain'\nB = { file = 'key' }\nC = { command = ['printf', 'x y'] }\n";
        let found: BTreeMap<_, _> = resolved(&test.town, text).unwrap().into_iter().collect();
        let expected = [("B", "s3cret"), ("C", "x y")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn missing_value_is_an_error_that_names_the_variable() {
        let test = TestTown::new();
        for text in [
            "[env]\nKEY = { file = 'nowhere' }\n",
            "[env]\nKEY = { command = ['false'] }\n",
            "[env]\nKEY = { command = [] }\n",
            "[env]\nKEY = { command = ['true'] }\n",
            "[env]\nKEY = { credential = 'x' }\n",
        ] {
            let problem = resolved(&test.town, text).unwrap_err();
            assert_eq!(
                problem.to_string(),
                "cannot read the value of KEY",
                "{text}"
            );
        }
    }
}
