import { isIP } from 'node:net';
import { applyDecorators } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import { IsBoolean, IsInt, Max, Min, ValidateBy } from 'class-validator';

/** A whole number from `least` to `most`. */
export const Whole = (least: number, most: number) =>
  applyDecorators(
    Type(() => Number),
    IsInt(),
    Min(least),
    Max(most),
  );

/** `true` or `false`, and no other word for it. */
export const Flag = () =>
  applyDecorators(
    Transform(({ value }) => (value === 'true' ? true : value === 'false' ? false : value)),
    IsBoolean(),
  );

/** An http(s) origin as URLs write it: no path, query, credentials, default port or upper case. */
export const IsHttpOrigin = () =>
  ValidateBy({
    name: 'isHttpOrigin',
    validator: {
      validate: (value) => /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value,
      defaultMessage: () => 'must be an http(s) address without path, and without a slash at its end',
    },
  });

/** An absolute http(s) address. */
export const IsHttpUrl = () =>
  ValidateBy({
    name: 'isHttpUrl',
    validator: {
      validate: (value) => /^https?:\/\/[^/]/.test(value) && URL.canParse(value),
      defaultMessage: () => 'must be an absolute http(s) address',
    },
  });

/** An address of Redis whose parts can be told apart and decoded: what a library makes of another may be told with its password. */
export const IsRedisUrl = () =>
  ValidateBy({
    name: 'isRedisUrl',
    validator: {
      validate: isRedisUrl,
      defaultMessage: () =>
        'must be redis://user:password@host:port or rediss://…, with special characters percent-encoded',
    },
  });

function isRedisUrl(text: unknown): boolean {
  if (typeof text !== 'string' || !/^rediss?:\/\/[^\s/]+(\/\d*)?$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname, port } = new URL(text);
  try {
    decodeURIComponent(username + password);
    return hostname !== '' && port !== '0';
  } catch {
    return false;
  }
}

/** What Express' `trust proxy` takes, without its names for whole ranges but two. */
export const IsTrustProxy = () =>
  ValidateBy({
    name: 'isTrustProxy',
    validator: {
      validate: (value) => /^\d{1,2}$/.test(value) || String(value).split(',').every(isNetwork),
      defaultMessage: () => 'must be a number of proxies, or addresses (with /prefix, if any) separated by commas',
    },
  });

function isNetwork(text: string): boolean {
  const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? [];
  const version = isIP(address);
  if (version === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(text.trim());
  return Number(prefix) <= (version === 4 ? 32 : 128);
}
