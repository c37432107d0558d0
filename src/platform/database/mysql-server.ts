import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import { setVerifiedHost } from '../private-members.js';

/** The host and the account with which a connection of mysql2 is opened. */
export interface MysqlServer {
  host: string;
  port: number;
  user: string;
  password: string;
  stream: typeof connectToIp | undefined;
}

/** @param url a valid DATABASE_URL of MySQL or MariaDB */
export function serverOf(url: string): MysqlServer {
  const { hostname, port, username, password } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return {
    host,
    port: Number(port || 3306),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    stream: tlsOf(url) && isIP(host) !== 0 ? connectToIp : undefined,
  };
}

/**
 * TLS 1.2 or later (RFC 9325 §3.1.1), with a certificate of a trusted authority for the host of DATABASE_URL (RFC 9525
 * §6). `ssl_ca` names a file with the authorities. With only `ssl=true`, Node's own and NODE_EXTRA_CA_CERTS are
 * trusted.
 */
export function tlsOf(url: string) {
  const { searchParams } = new URL(url);
  const file = searchParams.get('ssl_ca');
  if (file === null && searchParams.get('ssl') !== 'true') return undefined;
  const ca = file === null ? undefined : readFileSync(file, 'utf8');
  return { ca, verifyIdentity: true, minVersion: 'TLSv1.2' } as const;
}

/**
 * For an IP address mysql2 passes no name. Node would then verify `localhost`: it would reject certificates for IP
 * addresses, and accept a certificate for `localhost` from every server.
 */
function connectToIp({ config: { host, port } }: { config: { host: string; port: number } }): Socket {
  return setVerifiedHost(connect({ host, port, keepAlive: true, noDelay: true }), host);
}
