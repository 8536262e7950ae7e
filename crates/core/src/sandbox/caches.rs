//! Caches of toolchains inside a sandbox.
//!
//! A build writes to caches in the home folder, which is read-only inside: it would fail at the
//! first package that is not there yet. An agent that could write to them would put code where the
//! person's own builds run it. So the variables of [`CACHES`] point the toolchains to a folder that
//! only sandboxed agents of the same rig use.

/// A cache, and the variable that moves it.
#[derive(Clone, Copy, Debug)]
struct Cache {
    variable: &'static str,
    /// Value of the variable; `{}` is the folder of all caches.
    value: &'static str,
    /// Where it is otherwise, relative to the home folder.
    usual: &'static str,
}

const fn cache(variable: &'static str, value: &'static str, usual: &'static str) -> Cache {
    Cache {
        variable,
        value,
        usual,
    }
}

const CACHES: &[Cache] = &[
    cache("CARGO_HOME", "{}/cargo", ".cargo"),
    cache("GOMODCACHE", "{}/go-mod", "go"),
    cache("GOCACHE", "{}/go-build", ".cache/go-build"),
    cache("npm_config_cache", "{}/npm", ".npm"),
    cache("YARN_CACHE_FOLDER", "{}/yarn", ".cache/yarn"),
    cache("YARN_GLOBAL_FOLDER", "{}/yarn-global", ".yarn"),
    cache("PNPM_HOME", "{}/pnpm", ".local/share/pnpm"),
    cache("BUN_INSTALL_CACHE_DIR", "{}/bun", ".bun"),
    cache("DENO_DIR", "{}/deno", ".cache/deno"),
    cache("PIP_CACHE_DIR", "{}/pip", ".cache/pip"),
    cache("UV_CACHE_DIR", "{}/uv", ".cache/uv"),
    cache("POETRY_CACHE_DIR", "{}/poetry", ".cache/pypoetry"),
    cache("PRE_COMMIT_HOME", "{}/pre-commit", ".cache/pre-commit"),
    cache("GRADLE_USER_HOME", "{}/gradle", ".gradle"),
    cache("MAVEN_ARGS", "-Dmaven.repo.local={}/maven", ".m2"),
    cache("NUGET_PACKAGES", "{}/nuget", ".nuget"),
    cache("COMPOSER_CACHE_DIR", "{}/composer", ".cache/composer"),
    cache("BUNDLE_USER_CACHE", "{}/bundle", ".bundle"),
    cache("CCACHE_DIR", "{}/ccache", ".cache/ccache"),
    cache("SCCACHE_DIR", "{}/sccache", ".cache/sccache"),
];

/// Returns the variables that move the caches into a folder. A cache stays where it is if
/// `is_open` says that the agent may write there; its argument is relative to the home folder.
pub fn variables(
    folder: &str,
    is_open: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, String)> {
    let moved = CACHES.iter().filter(move |cache| !is_open(cache.usual));
    moved.map(move |cache| (cache.variable, cache.value.replace("{}", folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_the_agent_may_write_stay() {
        let moved: Vec<_> = variables("/c", |usual| usual == ".cargo").collect();
        assert_eq!(moved.len(), CACHES.len() - 1);
        assert!(moved.contains(&("GOCACHE", "/c/go-build".to_owned())));
        let maven = "-Dmaven.repo.local=/c/maven".to_owned();
        assert!(moved.contains(&("MAVEN_ARGS", maven)));
        assert!(moved.iter().all(|(name, _)| *name != "CARGO_HOME"));
    }
}
