import { OAuthError } from '@customer-authorization/service/grant';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { DemoSetup } from './demo-setup.js';

/** `localhost`, an address of 127.0.0.0/8 or `[::1]`, with or without a port. */
const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export const isLoopbackHost = (host: string): boolean => LOOPBACK_HOST.test(host);

/** The IPv6 form of an IPv4 address has the prefix `::ffff:`. */
const LOOPBACK_IP = /^(::1|(::ffff:)?127(\.\d{1,3}){3})$/i;

/**
 * Admits a request to the demo backend only if this machine sends it, names itself and shows a page of the same origin
 * (protocol §11). With DNS rebinding a foreign page gets the service as its own origin, but the request then has the
 * host name of the foreign page. Another machine can choose both headers, but not the address of its connection.
 */
@Injectable()
export class DemoBackendGuard implements CanActivate {
  constructor(private readonly setup: DemoSetup) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers, socket } = context.switchToHttp().getRequest<Request>();
    const { host = '', origin } = headers;
    // not `request.ip`, which a proxy header may set
    if (!LOOPBACK_IP.test(socket.remoteAddress ?? ''))
      throw OAuthError.invalidRequest('the demo backend responds to requests of its own machine only');
    if (!isLoopbackHost(host)) throw OAuthError.invalidRequest('Host: must be a loopback address');
    if (origin !== `http://${host}` && origin !== `https://${host}`)
      throw OAuthError.invalidRequest('Origin: must be the origin of the try-it page');
    if (this.setup.problem() !== undefined) throw OAuthError.notFound();
    return true;
  }
}
