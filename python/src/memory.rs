//! The memory that this process may still allocate: the system's free memory within the limits of its control group and
//! of its own address space.

use std::fs::read_to_string;
use std::path::Path;

use pyo3::prelude::*;

/// Value returned if the system does not report its free memory.
const UNKNOWN: u64 = 4 << 30;

/// Bytes of memory that this process may still take.
#[pyfunction]
pub(crate) fn available_memory() -> u64 {
    let system = read_to_string("/proc/meminfo").ok().and_then(|text| field(&text, "MemAvailable:"));
    let system = system.map_or(UNKNOWN, |kib| kib.saturating_mul(1024));
    [group_limit(), address_space()].into_iter().flatten().fold(system, u64::min)
}

/// Returns the bytes left of the limit that `ulimit -v` sets, if one is set.
fn address_space() -> Option<u64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    let limit: u64 = field(&limits, "Max address space")?;
    let used = read_to_string("/proc/self/status").ok().and_then(|text| field(&text, "VmSize:"))?;
    Some(limit.saturating_sub(used.saturating_mul(1024)))
}

fn group_limit() -> Option<u64> {
    let cgroups = read_to_string("/proc/self/cgroup").ok()?;
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let root = Path::new("/sys/fs/cgroup");
    // A limit anywhere above holds too; inside a container only the root of the mount may be visible.
    root.join(path.trim_start_matches('/'))
        .ancestors()
        .take_while(|p| p.starts_with(root))
        .filter_map(remaining)
        .min()
}

fn remaining(group: &Path) -> Option<u64> {
    let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number("memory.max")?;
    // Cached file pages are given back when memory is short.
    let cached =
        read_to_string(group.join("memory.stat")).ok().and_then(|text| field(&text, "inactive_file "));
    Some(limit.saturating_sub(number("memory.current")?.saturating_sub(cached.unwrap_or(0))))
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
