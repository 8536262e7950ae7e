//! Safe wrappers for three process queries of macOS.
//!
//! `libproc` is part of the system, and the crate `libc` declares its functions and structs. The
//! crate `libproc` is no better for three calls: its build script runs bindgen on the headers of
//! Apple's command line tools, so it needs libclang and cannot be checked from another system. It
//! also returns paths as `String`, so a path that is no UTF-8 would be lost.

#![expect(
    unsafe_code,
    reason = "neither std nor rustix can ask macOS about other processes"
)]

use libc::{c_int, c_void, proc_bsdinfo, proc_listallpids, proc_pidinfo, proc_pidpath};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Returns the pids of all processes.
pub(super) fn pids() -> Vec<u32> {
    // SAFETY: without a buffer the call only counts.
    let count = unsafe { proc_listallpids(std::ptr::null_mut(), 0) };
    // Room for processes that start meanwhile.
    let room = usize::try_from(count).unwrap_or_default() + 64;
    let mut pids: Vec<c_int> = vec![0; room];
    let bytes = c_int::try_from(size_of_val(pids.as_slice())).unwrap_or_default();
    // SAFETY: the buffer is valid for writes of `bytes` bytes, and any bytes are valid pids.
    let found = unsafe { proc_listallpids(pids.as_mut_ptr().cast::<c_void>(), bytes) };
    pids.truncate(usize::try_from(found).unwrap_or_default());
    pids.into_iter()
        .filter_map(|pid| u32::try_from(pid).ok().filter(|pid| *pid > 0))
        .collect()
}

/// Returns the kernel's information about a process.
pub(super) fn info(pid: u32) -> Option<proc_bsdinfo> {
    let pid = c_int::try_from(pid).ok()?;
    let mut info = MaybeUninit::<proc_bsdinfo>::zeroed();
    let size = c_int::try_from(size_of::<proc_bsdinfo>()).ok()?;
    let buffer = info.as_mut_ptr().cast::<c_void>();
    // SAFETY: the buffer is valid for writes of `size` bytes.
    let written = unsafe { proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, buffer, size) };
    // SAFETY: the struct consists of plain numbers, for which zeroes are valid as well.
    (written == size).then(|| unsafe { info.assume_init() })
}

/// Returns the path of the program that the process runs.
pub(super) fn path(pid: u32) -> Option<PathBuf> {
    let pid = c_int::try_from(pid).ok()?;
    let mut buffer = [0_u8; libc::PROC_PIDPATHINFO_MAXSIZE as usize];
    let size = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the buffer is valid for writes of `size` bytes.
    let length = unsafe { proc_pidpath(pid, buffer.as_mut_ptr().cast::<c_void>(), size) };
    let length = usize::try_from(length).ok().filter(|length| *length > 0)?;
    Some(PathBuf::from(OsStr::from_bytes(buffer.get(..length)?)))
}
