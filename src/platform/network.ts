import { isIP, isIPv4, isIPv6 } from 'node:net';

export interface LimitKey {
  key: string;
  /** How many times the limit this key may use. */
  factor: number;
}

/** The address, and the network for limits, of a caller whose address is unknown. */
export const UNKNOWN_NETWORK = 'unknown';

/** The IP address in a text, without the zone, brackets and port that proxies may add; `unknown` if there is none. */
export function ipOf(text: string): string {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const [bare = ''] = (bracketed ?? withPort ?? text).split('%', 1);
  return isIP(bare) ? bare : UNKNOWN_NETWORK;
}

/** A /56 contains 256 networks of /64, a /48 contains 256 of /56. Providers assign one of the three (RFC 6177 §2). */
const PREFIX_56_FACTOR = 8;
const PREFIX_48_FACTOR = 32;

/** The network of one address holder, in any notation: an IPv4 address or an IPv6 /64. */
export function networkOf(text: string): string {
  return keysOfIp(text)[0].key;
}

/**
 * The networks in which a limit counts all requests or those for an `account`, the narrowest first. One caller can have
 * a /48, which has 65,536 networks of /64.
 */
export function keysOfIp(text: string, account = ''): [LimitKey, ...LimitKey[]] {
  const keyOf = (network: string, factor: number) => ({ key: account ? `${account} ${network}` : network, factor });
  const groups = ipv6Groups(text);
  if (!groups) return [keyOf(UNKNOWN_NETWORK, 1)];
  const isIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  if (isIpv4) return [keyOf(groups.join(':'), 1)];
  const [first, second, third, fourth] = groups;
  const prefix = `${first}:${second}:${third}`;
  const upperByte = (Number.parseInt(`${fourth}`, 16) & 0xff00).toString(16);
  return [
    keyOf(`${prefix}:${fourth}`, 1),
    keyOf(`${prefix}:${upperByte}/56`, PREFIX_56_FACTOR),
    keyOf(`${prefix}/48`, PREFIX_48_FACTOR),
  ];
}

/** The end site (RFC 6177): an IPv4 address, or the /56 of an IPv6 address and, with 4 times the limit, its /48. */
export function keysOfSite(text: string): LimitKey[] {
  const [narrowest, ...wider] = keysOfIp(text);
  if (wider.length === 0) return [narrowest];
  return wider.map(({ key, factor }) => ({ key, factor: factor / PREFIX_56_FACTOR }));
}

/** The eight groups of an address; an IPv4 address is written as an IPv4-mapped one (RFC 4291 §2.5.5.2). */
function ipv6Groups(text: string): string[] | undefined {
  const ip = ipOf(text);
  if (isIPv4(ip)) return mappedGroups(ip);
  if (!isIPv6(ip)) return undefined;
  const canonical = new URL(`http://[${ip}]`).hostname.slice(1, -1); // RFC 5952
  const [left = [], right = []] = canonical.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}

/** Without a URL, which costs 27 µs: nearly every request has an IPv4 address. */
function mappedGroups(ipv4: string): string[] {
  const [first = 0, second = 0, third = 0, fourth = 0] = ipv4.split('.').map(Number);
  const groupOf = (high: number, low: number) => (high * 256 + low).toString(16);
  return ['0', '0', '0', '0', '0', 'ffff', groupOf(first, second), groupOf(third, fourth)];
}
