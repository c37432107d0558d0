import { isIP, isIPv4, isIPv6 } from 'node:net';

/** What stands where no address is to be had: all who show none are one. */
const UNKNOWN = 'unknown';

/** The address in a text, without the zone, brackets and port that proxies may write with it; `unknown` where none is. */
export function addressOf(text: string): string {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const [bare = ''] = (bracketed ?? withPort ?? text).split('%', 1);
  return isIP(bare) ? bare : UNKNOWN;
}

/** One bucket for all addresses that one holder can take, however spelt: an IPv4 address, an IPv6 /64 (RFC 6177). */
export function networkOf(text: string): string {
  const address = addressOf(text);
  const ipv6 = isIPv4(address) ? `::ffff:${address}` : address;
  if (!isIPv6(ipv6)) return UNKNOWN;
  const groups = groupsOf(new URL(`http://[${ipv6}]`).hostname.slice(1, -1));
  const isIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  return groups.slice(0, isIpv4 ? 8 : 4).join(':');
}

/** The eight numbers of an IPv6 address in its canonical spelling (RFC 5952). */
function groupsOf(ipv6: string): string[] {
  const [left = [], right = []] = ipv6.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}
