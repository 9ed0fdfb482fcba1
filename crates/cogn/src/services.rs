//! The services that can answer: their names, variables and addresses. Without the feature `net` there is none, and a type
//! without values says so, so that every decision about services is written once.

#[cfg(feature = "net")]
pub use cognitive_net::{Kind, is_on_this_machine};
#[cfg(not(feature = "net"))]
pub use none::{NoService as Kind, is_on_this_machine};

#[cfg(not(feature = "net"))]
mod none {
    /// A service. This build has none.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoService {}

    impl NoService {
        /// All services.
        pub fn all() -> impl Iterator<Item = Self> {
            std::iter::empty()
        }

        /// The service of a name.
        #[must_use]
        pub fn parse(_: &str) -> Option<Self> {
            None
        }

        /// Its name.
        #[must_use]
        pub fn name(self) -> &'static str {
            match self {}
        }

        /// The model that it is asked for where nothing else is said.
        #[must_use]
        pub fn default_model(self) -> Option<&'static str> {
            match self {}
        }

        /// The variable that holds its address.
        #[must_use]
        pub fn base_url_variable(self) -> &'static str {
            match self {}
        }

        /// The variable that holds its key.
        #[must_use]
        pub fn key_variable(self) -> Option<&'static str> {
            match self {}
        }

        /// Whether it answers nobody without a key.
        #[must_use]
        pub fn needs_key(self) -> bool {
            match self {}
        }
    }

    /// Whether an address of a service is on this machine.
    #[must_use]
    pub fn is_on_this_machine(kind: NoService, _: &str) -> bool {
        match kind {}
    }
}
