//! The model services: their names, variables and addresses. Without the feature `net` there are none. An empty enum
//! represents that, so code about services is written only once.

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
        /// The services that are chosen by their credentials alone.
        pub const CHOSEN_BY_KEY: [Self; 0] = [];

        /// Returns all services.
        pub fn all() -> impl Iterator<Item = Self> {
            std::iter::empty()
        }

        /// Returns the service with this name.
        #[must_use]
        pub fn parse(_: &str) -> Option<Self> {
            None
        }

        /// Returns its name.
        #[must_use]
        pub fn name(self) -> &'static str {
            match self {}
        }

        /// Returns the model that is used by default.
        #[must_use]
        pub fn default_model(self) -> Option<&'static str> {
            match self {}
        }

        /// Returns the address that is used by default.
        #[must_use]
        pub fn default_base_url(self) -> Option<&'static str> {
            match self {}
        }

        /// Returns the variable that holds its address.
        #[must_use]
        pub fn base_url_variable(self) -> &'static str {
            match self {}
        }

        /// Returns the variable that holds its key.
        #[must_use]
        pub fn key_variable(self) -> Option<&'static str> {
            match self {}
        }

        /// Returns whether it requires a key.
        #[must_use]
        pub fn needs_key(self) -> bool {
            match self {}
        }

        /// Returns whether it has an API of OpenAI.
        #[must_use]
        pub fn speaks_openai(self) -> bool {
            match self {}
        }
    }

    /// Returns whether the address of a service is on this machine.
    #[must_use]
    pub fn is_on_this_machine(kind: NoService, _: &str) -> bool {
        match kind {}
    }
}
