import { networksOf, siteNetworksOf } from './network.js';

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
