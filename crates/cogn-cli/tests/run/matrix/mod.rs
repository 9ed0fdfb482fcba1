//! Every run option on every surface, by every way to set it: honoured, or refused with a clear error, and never ignored. A cell
//! is judged by what the model service received or by the envelope. Each surface starts as users start it.

mod clients;
mod foreign_pages;
mod module_models;
mod run_options;
mod surfaces;
