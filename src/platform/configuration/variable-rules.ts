import { isIP } from 'node:net';
import { applyDecorators } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import { IsBoolean, IsInt, IsOptional, Max, Min } from 'class-validator';
import { rule } from '../validation.js';

export const Whole = (min: number, max: number) =>
  applyDecorators(
    Type(() => Number),
    IsInt(),
    Min(min),
    Max(max),
  );

/** 0 lets the kernel choose a port. */
export const OptionalPort = () => applyDecorators(IsOptional(), Whole(0, 65_535));

export const Flag = () =>
  applyDecorators(
    Transform(({ value }) => (value === 'true' ? true : value === 'false' ? false : value)),
    IsBoolean(),
  );

/** An http(s) origin in its normal form: no path, query, credentials, default port or upper case. */
export const IsHttpOrigin = () =>
  rule(
    'isHttpOrigin',
    (text: string) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text,
    'must be an http(s) URL without a path and without a slash at its end',
  );

export const IsHttpUrl = () =>
  rule(
    'isHttpUrl',
    (text: string) => /^https?:\/\/[^/]/.test(text) && URL.canParse(text),
    'must be an absolute http(s) URL',
  );

/** For any other URL, the error of a library could contain its password. */
export const IsRedisUrl = () =>
  rule(
    'isRedisUrl',
    isRedisUrl,
    'must be redis://user:password@host:port or rediss://…, with special characters percent-encoded',
  );

function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\/[^\s/]+(\/\d*)?$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname, port } = new URL(text);
  return hostname !== '' && port !== '0' && isPercentEncoded(username + password);
}

export function isPercentEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

/** A value of Express' `trust proxy`: a number, addresses, or one of its three names for ranges. */
export const IsTrustProxy = () =>
  rule(
    'isTrustProxy',
    (text: string) => /^\d{1,2}$/.test(text) || text.split(',').every(isNetwork),
    'must be a number of proxies, or IP addresses or networks, separated by commas',
  );

function isNetwork(text: string): boolean {
  const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? [];
  const version = isIP(address);
  if (version === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(text.trim());
  return Number(prefix) <= (version === 4 ? 32 : 128);
}
