//! Listings as structs.
//!
//! A listing prints one line per object, and titles, paths and user options in it may contain tabs,
//! newlines and every other byte. So there is no fixed separator. Each query generates two
//! unpredictable words (see `nonce.rs`): one separates the fields, the other ends the row, and all
//! bytes between them belong to the value.
//!
//! tmux expands each field of each object in its single thread, so a listing of many objects with
//! many user options is slow. A row may therefore name an option in which writers keep a packed copy
//! of some fields ([`pack`](crate::pack)). A listing then expands one field in their place, and an
//! object without the copy is listed by its fields as before.
//!
//! [`query!`](crate::query) generates the struct and its [`Row`], `row/field.rs` parses the values,
//! `row/listing.rs` holds the separators, and `row/packed.rs` the packed copies.

mod field;
mod listing;
mod packed;

pub use field::{Field, FieldError};
pub(crate) use listing::Listing;
#[cfg(any(test, feature = "testing"))]
pub(crate) use packed::stale_copies;
pub use packed::{Packed, pack};

/// A struct that holds one line of a listing. [`query!`](crate::query) implements it.
pub trait Row: Sized {
    /// The fields that writers also keep in one packed user option.
    const PACKED: Option<Packed> = None;

    /// Returns the format of each field, in order. The packed fields are the last ones.
    fn fields() -> &'static [&'static str];

    /// Parses the values, one for each field.
    fn parse(values: &[&str]) -> Result<Self, FieldError>;
}

/// Declares a struct together with the format of each of its fields.
///
/// ```
/// gt_tmux::query! {
///     /// A client and its session.
///     #[derive(PartialEq)]
///     pub struct Client {
///         /// Its terminal.
///         pub tty: std::path::PathBuf = "#{client_tty}",
///         pub session: String = "#{client_session}",
///         pub is_control: bool = "#{client_control_mode}",
///         pub width: Option<u32> = "#{client_width}",
///     }
/// }
/// ```
///
/// The types of the fields implement [`Field`]. The struct derives `Clone` and `Debug`. Fields in a
/// second block, `packed "@option" { … }`, are those of [`Row::PACKED`](crate::Row::PACKED).
#[macro_export]
macro_rules! query {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field_visibility:vis $field:ident : $type:ty = $format:expr
            ),+ $(,)?
        }
        $(packed $option:literal {
            $(
                $(#[$packed_meta:meta])*
                $packed_visibility:vis $packed:ident : $packed_type:ty = $packed_format:expr
            ),+ $(,)?
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)+
            $($($(#[$packed_meta])* $packed_visibility $packed: $packed_type,)+)?
        }

        impl $crate::Row for $name {
            $(const PACKED: ::std::option::Option<$crate::Packed> =
                ::std::option::Option::Some($crate::Packed {
                    option: $option,
                    count: [$($packed_format),+].len(),
                });)?

            fn fields() -> &'static [&'static str] {
                &[$($format),+ $(, $($packed_format),+)?]
            }

            fn parse(values: &[&str]) -> ::std::result::Result<Self, $crate::FieldError> {
                let mut values = values.iter().copied();
                ::std::result::Result::Ok(Self {
                    $($field: <$type as $crate::Field>::parse_next(
                        ::std::stringify!($field),
                        &mut values,
                    )?,)+
                    $($($packed: <$packed_type as $crate::Field>::parse_next(
                        ::std::stringify!($packed),
                        &mut values,
                    )?,)+)?
                })
            }
        }
    };
}

#[cfg(test)]
mod on_a_server;
