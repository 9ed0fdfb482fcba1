//! An audit log in memory. Never fails.

use std::sync::Mutex;

use cognitive_contract::ports::{AuditLog, AuditRecord};

use super::lock;

/// Stores every record of a test in memory.
#[derive(Debug, Default)]
pub struct MemoryAuditLog(Mutex<Vec<AuditRecord>>);

impl MemoryAuditLog {
    /// All records so far, the oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<AuditRecord> {
        lock(&self.0).clone()
    }
}

impl AuditLog for MemoryAuditLog {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        lock(&self.0).push(record.clone());
        Ok(())
    }
}
