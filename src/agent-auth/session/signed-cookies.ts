import { Injectable } from '@nestjs/common';
import cookieParser from 'cookie-parser';
import type { Request } from 'express';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { derivedSecret, equalInConstantTime } from '../../platform/secret.js';

type CookieName = 'agent_session' | 'agent_device' | 'form';

/** Reads and writes the cookies of the authorization page: signed, HttpOnly, SameSite=Lax, of this host only. */
@Injectable()
export class SignedCookies {
  private readonly secure: boolean;
  private readonly configuredSecrets: string[] | undefined;

  constructor(
    { AUTH_URL, SESSION_SECRET }: Configuration,
    private readonly keys: SigningKeys,
  ) {
    this.secure = AUTH_URL.startsWith('https:');
    this.configuredSecrets = SESSION_SECRET?.split(',');
  }

  /** Verifies only the first cookie of the name. cookie-parser's middleware would verify all that the caller sends. */
  read(request: Request, name: CookieName): string | undefined {
    const cookie = firstCookie(request.headers.cookie ?? '', this.fullName(name));
    // cookieParser.signedCookie returns a text without the prefix `s:` unchanged, although it has no signature
    if (!cookie?.startsWith('s:')) return undefined;
    const value = cookieParser.signedCookie(cookie, this.secrets);
    // The signature does not cover the name. The value repeats it, so that one cookie is never accepted as another.
    return value !== false && value.startsWith(`${name}.`) ? value.slice(name.length + 1) : undefined;
  }

  write(request: Request, name: CookieName, value: string, lifetimeSeconds: number): void {
    request.secret = this.secrets[0]; // Express signs the cookie with this secret
    request.res?.cookie(this.fullName(name), `${name}.${value}`, {
      ...this.attributes(),
      signed: true,
      maxAge: lifetimeSeconds * 1000,
    });
  }

  remove(request: Request, name: CookieName): void {
    request.res?.clearCookie(this.fullName(name), this.attributes());
  }

  /** The purpose is signed too, so that a signature for one purpose is not valid for another. */
  sign(purpose: string, text: string): string {
    return derivedSecret(this.secrets[0] as string, `${purpose}\n${text}`);
  }

  isSignature(purpose: string, text: string, signature: string): boolean {
    const content = `${purpose}\n${text}`;
    return this.secrets.some((secret) => equalInConstantTime(derivedSecret(secret, content), signature));
  }

  /** The first one signs, all verify. Operators already rotate the signing keys, which all processes share. */
  private get secrets(): string[] {
    return this.configuredSecrets ?? this.keys.derivedSecrets('agent session');
  }

  /** With the prefix `__Host-` no other subdomain can set the cookie. Browsers accept the prefix only over TLS. */
  private fullName(name: CookieName): string {
    return this.secure ? `__Host-${name}` : name;
  }

  private attributes() {
    return { path: '/', httpOnly: true, sameSite: 'lax', secure: this.secure } as const;
  }
}

/** The decoded value of the first cookie of a name (RFC 6265 §5.4). */
function firstCookie(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const end = pair.indexOf('=');
    if (end !== -1 && pair.slice(0, end).trim() === name) return decoded(pair.slice(end + 1).trim());
  }
  return undefined;
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
