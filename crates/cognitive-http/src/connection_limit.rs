//! Limits connections per address, so that one client cannot use up all of them. Stores only addresses with open
//! connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use cognitive_contract::lock::Lock;

/// The connections of all addresses.
#[derive(Debug)]
pub(crate) struct AddressConnections {
    /// The limit per address; 0 means no limit.
    most: usize,
    by_address: Lock<HashMap<IpAddr, usize>>,
}

/// A permit for one connection of an address, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit(Option<(Arc<AddressConnections>, IpAddr)>);

impl AddressConnections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, by_address: Lock::default() })
    }

    /// Returns a permit for one more connection of this address, if it is below its limit.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        if self.most == 0 {
            return Some(ConnectionPermit(None));
        }
        let house = client_network(address);
        let mut by_address = self.by_address.lock();
        let count = by_address.entry(house).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit(Some((Arc::clone(self), house))))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some((per_address, house)) = self.0.take() else { return };
        let mut by_address = per_address.by_address.lock();
        if let Some(count) = by_address.get_mut(&house) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&house);
            }
        }
    }
}

/// Reduces an address to the part that distinguishes clients. An IPv6 customer usually gets a network of 2⁶⁴
/// addresses, and all loopback addresses belong to this machine.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Ipv4Addr::LOCALHOST.into();
    }
    match address {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_places_and_gets_them_back() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let per_address = AddressConnections::new(2);
        let first = per_address.admit(address("10.0.0.1")).unwrap();
        let second = per_address.admit(address("::ffff:10.0.0.1")).unwrap();
        assert!(per_address.admit(address("10.0.0.1")).is_none());
        assert!(per_address.admit(address("10.0.0.2")).is_some());
        drop(first);
        assert!(per_address.admit(address("10.0.0.1")).is_some());
        drop(second);
        assert!(per_address.by_address.lock().is_empty(), "nobody is remembered who has no connection");
        let _six = [per_address.admit(address("2001:db8::1")), per_address.admit(address("2001:db8::2"))]
            .map(Option::unwrap);
        assert!(per_address.admit(address("2001:db8::3")).is_none());
        assert!(per_address.admit(address("2001:db8:0:1::1")).is_some());
        for local in ["127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "::ffff:127.0.0.9"] {
            assert_eq!(client_network(address(local)), address("127.0.0.1"), "{local}");
        }
        assert!(AddressConnections::new(0).admit(address("10.0.0.1")).is_some());
    }
}
