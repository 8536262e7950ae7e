//! Conversions of error enums.
//!
//! A function whose callers distinguish failures returns an enum. Each variant holds the [`Problem`]
//! for people, so that a caller which does not distinguish converts the error with `?`.
//!
//! [`Problem`]: gt_core::Problem

/// Implements the conversions of an error enum: all variants hold a problem.
macro_rules! error_enum {
    ($name:ident: $($variant:ident),+) => {
        impl $name {
            /// Returns the problem for people.
            pub fn problem(&self) -> &gt_core::Problem {
                match self {
                    $($name::$variant(problem))|+ => problem,
                }
            }
        }

        impl From<$name> for gt_core::Problem {
            fn from(error: $name) -> Self {
                match error {
                    $($name::$variant(problem))|+ => problem,
                }
            }
        }

        impl $crate::base::or_log::LogText for $name {
            fn text(&self) -> String {
                self.problem().line()
            }
        }
    };
}

pub(crate) use error_enum;
