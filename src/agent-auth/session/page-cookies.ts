import { Injectable } from '@nestjs/common';
import cookieParser from 'cookie-parser';
import type { Request, Response } from 'express';
import { Configuration } from '../../platform/configuration/configuration.js';

type CookieName = 'agent_session' | 'agent_device';

const parseCookies = cookieParser();

/** Reads and writes the cookies of the authorization page: HttpOnly, SameSite=Lax, of this host only. */
@Injectable()
export class PageCookies {
  private readonly secure: boolean;

  constructor({ AUTH_URL }: Configuration) {
    this.secure = AUTH_URL.startsWith('https:');
  }

  read(request: Request, name: CookieName): string | undefined {
    parseCookies(request, request.res as Response, () => undefined);
    const value: unknown = request.cookies[this.fullName(name)];
    return typeof value === 'string' ? value : undefined; // cookie-parser decodes JSON
  }

  write(request: Request, name: CookieName, value: string, lifetimeSeconds: number): void {
    request.res?.cookie(this.fullName(name), value, { ...this.attributes(), maxAge: lifetimeSeconds * 1000 });
  }

  remove(request: Request, name: CookieName): void {
    request.res?.clearCookie(this.fullName(name), this.attributes());
  }

  /** With the prefix `__Host-` no other subdomain can set the cookie. Browsers accept the prefix only over TLS. */
  private fullName(name: CookieName): string {
    return this.secure ? `__Host-${name}` : name;
  }

  private attributes() {
    return { path: '/', httpOnly: true, sameSite: 'lax', secure: this.secure } as const;
  }
}
