import { Injectable } from '@nestjs/common';
import cookieParser from 'cookie-parser';
import type { Request, Response } from 'express';
import { Configuration } from '../../platform/configuration/configuration.js';
import { SessionSecrets } from './session-secrets.js';

/** The cookies of the authorization page: signed, HttpOnly, SameSite=Lax, of this host alone. */
@Injectable()
export class SignedCookies {
  private readonly secure: boolean;

  constructor(
    { AUTH_URL }: Configuration,
    private readonly secrets: SessionSecrets,
  ) {
    this.secure = AUTH_URL.startsWith('https:');
  }

  /** The value of a cookie that we have signed; `undefined` where there is none. */
  read(request: Request, name: string): string | undefined {
    this.parse(request);
    const value: unknown = request.signedCookies[this.fullName(name)];
    // the signature does not cover the name: so that no cookie passes for another, the value repeats it
    return typeof value === 'string' && value.startsWith(`${name}.`) ? value.slice(name.length + 1) : undefined;
  }

  /** `lifetime` in seconds. */
  write(request: Request, name: string, value: string, lifetime: number): void {
    this.parse(request);
    request.res?.cookie(this.fullName(name), `${name}.${value}`, {
      ...this.attributes(),
      signed: true,
      maxAge: lifetime * 1000,
    });
  }

  remove(request: Request, name: string): void {
    request.res?.clearCookie(this.fullName(name), this.attributes());
  }

  /** Once for each request, with the secrets of that moment. */
  private parse(request: Request): void {
    if (request.secret === undefined) cookieParser(this.secrets.all)(request, request.res as Response, () => undefined);
  }

  /** `__Host-` keeps a neighbouring subdomain from planting one; browsers accept it only over TLS. */
  private fullName(name: string): string {
    return this.secure ? `__Host-${name}` : name;
  }

  private attributes() {
    return { path: '/', httpOnly: true, sameSite: 'lax', secure: this.secure } as const;
  }
}
