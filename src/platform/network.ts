import { isIP, isIPv4, isIPv6 } from 'node:net';

/** A key of a limit. */
export interface LimitKey {
  key: string;
  /** How many times the limit this key may use. */
  factor: number;
}

/** The keys of an IP address, or of an account in its networks. */
export function keysOfIp(ip: string, account: string): LimitKey[] {
  return networksOf(ip).map(({ network, factor }) => ({ key: `${account && `${account} `}${network}`, factor }));
}

/** The keys of the end site of an IP address. */
export function keysOfSite(ip: string): LimitKey[] {
  return siteNetworksOf(ip).map(({ network, factor }) => ({ key: network, factor }));
}

/** The network of callers without a readable IP address. They share one count. */
const UNKNOWN = 'unknown';

/** The IP address in a text, without the zone, brackets and port that proxies may add; `unknown` if there is none. */
export function ipOf(text: string): string {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const [bare = ''] = (bracketed ?? withPort ?? text).split('%', 1);
  return isIP(bare) ? bare : UNKNOWN;
}

/** A network that contains an IP address, and how many times the limit it may use. */
export interface Network {
  network: string;
  factor: number;
}

/** A /56 contains 256 networks of /64, a /48 contains 256 of /56. Providers assign one of the three (RFC 6177 §2). */
const PREFIX_56_FACTOR = 8;
const PREFIX_48_FACTOR = 32;

/** The network of one address holder, in any notation: an IPv4 address or an IPv6 /64. */
export function networkOf(text: string): string {
  const groups = ipv6Groups(text);
  return groups ? narrowestOf(groups) : UNKNOWN;
}

/**
 * The networks that a limit counts for an IP address, the narrowest first: an IPv4 address, or the /64, /56 and /48 of
 * an IPv6 address. One caller can have a whole /48, which contains 65,536 networks of /64.
 */
export function networksOf(text: string): Network[] {
  const groups = ipv6Groups(text);
  if (!groups) return [{ network: UNKNOWN, factor: 1 }];
  const narrowest = { network: narrowestOf(groups), factor: 1 };
  if (isMappedIpv4(groups)) return [narrowest];
  const [first, second, third, fourth] = groups;
  const prefix = `${first}:${second}:${third}`;
  const upperByte = (Number.parseInt(`${fourth}`, 16) & 0xff00).toString(16);
  return [
    narrowest,
    { network: `${prefix}:${upperByte}/56`, factor: PREFIX_56_FACTOR },
    { network: `${prefix}/48`, factor: PREFIX_48_FACTOR },
  ];
}

/**
 * The networks that a limit per end site counts for an IP address: an IPv4 address, or the /56 of an IPv6 address and,
 * with 4 times the limit, its /48. The networks of /64 inside one /56 share its limit.
 */
export function siteNetworksOf(text: string): Network[] {
  const [narrowest, ...wider] = networksOf(text) as [Network, ...Network[]];
  if (wider.length === 0) return [narrowest];
  return wider.map(({ network, factor }) => ({ network, factor: factor / PREFIX_56_FACTOR }));
}

/** The eight groups of an address; an IPv4 address is written as an IPv4-mapped one (RFC 4291 §2.5.5.2). */
function ipv6Groups(text: string): string[] | undefined {
  const ip = ipOf(text);
  const ipv6 = isIPv4(ip) ? `::ffff:${ip}` : ip;
  if (!isIPv6(ipv6)) return undefined;
  return groupsOf(new URL(`http://[${ipv6}]`).hostname.slice(1, -1));
}

function narrowestOf(groups: string[]): string {
  return groups.slice(0, isMappedIpv4(groups) ? 8 : 4).join(':');
}

function isMappedIpv4(groups: string[]): boolean {
  return groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
}

/** The eight numbers of an IPv6 address in its canonical spelling (RFC 5952). */
function groupsOf(ipv6: string): string[] {
  const [left = [], right = []] = ipv6.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}
