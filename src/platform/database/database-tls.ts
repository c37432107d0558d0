import { readFileSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';

/** `stream` of mysql2's options, which mysql2 declares as `any`. */
type StreamFactory = (options: { config: { host: string; port: number } }) => Socket;

/** The part of a connection's options that TLS needs. */
interface TlsOptions {
  ssl: { ca: string | undefined; verifyIdentity: true; minVersion: string };
  /** Opens the TCP connection in place of mysql2. */
  stream?: StreamFactory;
}

/**
 * TLS to the database, where DATABASE_URL asks for it: the certificate must be issued by a trusted authority for the
 * host that DATABASE_URL names (RFC 9525 §6), and the protocol must be TLS 1.2 or later (RFC 9325 §3.1.1).
 *
 * The trusted authorities are those in the file of `ssl_ca`. With `ssl=true` alone they are Node's own, and those of
 * NODE_EXTRA_CA_CERTS.
 */
export function tlsOptionsOf(host: string, searchParams: URLSearchParams): TlsOptions | undefined {
  const file = searchParams.get('ssl_ca');
  if (file === null && searchParams.get('ssl') !== 'true') return undefined;
  const ca = file === null ? undefined : readFileSync(file, 'utf8');
  const ssl = { ca, verifyIdentity: true, minVersion: 'TLSv1.2' } as const;
  return isIP(host) === 0 ? { ssl } : { ssl, stream: connectToIp };
}

/**
 * Sets the name that Node verifies, if the host is an IP address. mysql2 passes no name then, and Node takes the name
 * from the socket. A socket has a name only after a DNS lookup; without one, Node verifies `localhost`. It would then
 * reject certificates for IP addresses, and accept a certificate for `localhost` from every server.
 */
const connectToIp: StreamFactory = ({ config }) => {
  const { host, port } = config;
  return Object.assign(connect({ host, port, keepAlive: true, noDelay: true }), { _host: host });
};
