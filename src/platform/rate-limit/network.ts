import { isIPv4, isIPv6 } from 'node:net';

/** One bucket for all addresses that one holder can take, however spelt: an IPv4 address, an IPv6 /64 (RFC 6177). */
export function networkOf(address: string): string {
  const [bare = ''] = address.split('%', 1); // after it stands the zone
  const ipv6 = isIPv4(bare) ? `::ffff:${bare}` : bare;
  if (!isIPv6(ipv6)) return bare;
  const groups = groupsOf(new URL(`http://[${ipv6}]`).hostname.slice(1, -1));
  const isIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  return groups.slice(0, isIpv4 ? 8 : 4).join(':');
}

/** The eight numbers of an IPv6 address in its canonical spelling (RFC 5952). */
function groupsOf(ipv6: string): string[] {
  const [left = [], right = []] = ipv6.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}
