//! Which memory devices hold a physical address: not known on Windows.

use std::path::Path;

/// Why no device is known.
const UNKNOWN: &str = "Windows does not show programs the physical addresses of their memory, so the memory device cannot be told";

/// The memory devices behind ranges of physical addresses. Windows never tells a program a physical address, so no map is ever made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceMap(());

impl DeviceMap {
    /// What firmware says.
    ///
    /// # Errors
    /// Always: there is no physical address to look up.
    pub fn read(_root: &Path) -> Result<Self, String> {
        Err(UNKNOWN.to_owned())
    }

    /// The devices that may hold this physical address.
    ///
    /// # Errors
    /// Always: no map is known.
    pub fn at(&self, _physical: u64) -> Result<Vec<String>, &'static str> {
        Err(UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_device_is_named() {
        assert!(DeviceMap::read(Path::new("/")).unwrap_err().contains("physical addresses"));
        assert!(DeviceMap::default().at(0).unwrap_err().contains("physical addresses"));
    }
}
