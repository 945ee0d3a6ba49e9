//! What a board was doing while something was measured: the figures depend on it.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// What the system tells; none of what it does not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// Frequency governor of the first core, `performance` for figures that can be repeated.
    pub governor: Option<String>,
    /// The hottest zone, degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Raspberry Pi's throttle bits, hexadecimal: `0` is neither too hot nor short of current.
    pub throttled: Option<String>,
}

impl Board {
    /// As it is now; `root` is `/`, but for tests.
    #[must_use]
    pub fn now(root: &Path) -> Self {
        let text = |path: &str| {
            let text = fs::read_to_string(root.join(path)).ok()?;
            Some(text.trim().to_string())
        };
        let zones = fs::read_dir(root.join("sys/class/thermal"));
        let zones = zones.into_iter().flatten().flatten();
        let heat = zones.filter_map(|zone| {
            let milli = fs::read_to_string(zone.path().join("temp")).ok()?;
            milli.trim().parse::<f64>().ok().map(|milli| milli / 1000.0)
        });
        Self {
            governor: text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            temperature_c: heat.reduce(f64::max),
            throttled: text("sys/devices/platform/soc/soc:firmware/get_throttled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read_and_nothing_else_is_made_up() {
        let root = std::env::temp_dir().join(format!("asr-edge-board-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/class/thermal/thermal_zone0/temp", "41500\n");
        write("sys/class/thermal/thermal_zone1/temp", "63250\n");
        write(
            "sys/devices/platform/soc/soc:firmware/get_throttled",
            "50005\n",
        );
        let found = Board::now(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(None, found.governor);
        assert_eq!(Some(63.25), found.temperature_c);
        assert_eq!(Some("50005"), found.throttled.as_deref());
    }
}
