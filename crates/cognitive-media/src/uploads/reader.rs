//! Reads one upload from the disk in chunks. An open reader reaches the end, even if the upload expires meanwhile.

use std::fs::File;
use std::io::{self, Read as _};

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::UploadReader;
use cognitive_contract::ports::PortFuture;

use super::record::Paths;
use super::upload_gone;
use crate::fault::server_failure;

/// The bytes of one chunk.
const PIECE: u64 = 256 << 10;

pub(super) struct StoredUpload {
    /// `None` while a chunk is being read, and permanently after a failure.
    open: Option<File>,
}

impl StoredUpload {
    pub(super) fn open(paths: &Paths) -> io::Result<Self> {
        Ok(Self { open: Some(File::open(&paths.data)?) })
    }
}

impl UploadReader for StoredUpload {
    fn piece(&mut self) -> PortFuture<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async move {
            let Some(file) = self.open.take() else { return Err(upload_gone()) };
            let read = tokio::task::spawn_blocking(move || {
                let mut piece = Vec::new();
                (&file).take(PIECE).read_to_end(&mut piece)?;
                Ok((file, piece))
            });
            let read = read.await.map_err(|_| upload_gone())?;
            let (file, piece) = read.map_err(|error| server_failure("the upload cannot be read", &error))?;
            self.open = Some(file);
            Ok((!piece.is_empty()).then(|| Bytes::from(piece)))
        })
    }
}
