//! A backup of a store while other processes use it: one snapshot in a new file. A copy of the file with other tools may
//! lack what is in the write-ahead log, or mix two states.

use std::path::Path;

use crate::audit::Verification;
use crate::error::{Problem, StoreError};
use crate::platform;
use crate::sql::{SqlDialect, values};
use crate::store::Store;

impl Store {
    /// Writes one snapshot of the store into a new file that only its owner can read, and verifies it. Writers are not
    /// blocked. Refuses an existing file, and a store on a server, which has its own tools.
    pub fn back_up(&self, to: &Path) -> Result<Verification, StoreError> {
        let failed = |problem: Problem| StoreError::new(to, problem);
        let shown = to.to_str().ok_or_else(|| failed(Problem::Failed("the path is not UTF-8".to_owned())))?;
        self.look(|session| match session.dialect() {
            SqlDialect::Sqlite => Ok(()),
            #[cfg(feature = "postgres")]
            SqlDialect::Postgres => {
                Err(Problem::Failed("a server is backed up with its own tools, such as `pg_dump`".to_owned()))
            }
        })?;
        platform::create_private_file(to)
            .map_err(|error| failed(Problem::Inaccessible(error.to_string())))?;
        let written = self.look(|session| session.execute("VACUUM INTO ?1", &values![shown]));
        let verified = written.and_then(|_| {
            let backup = Self::open_existing(to)?;
            backup.ok_or_else(|| failed(Problem::Failed("it was not written".to_owned())))?.verify(&[])
        });
        verified.inspect_err(|_| {
            // An incomplete file must not be taken for a backup.
            let _ = std::fs::remove_file(to);
        })
    }
}
