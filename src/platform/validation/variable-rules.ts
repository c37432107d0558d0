import { isIP } from 'node:net';
import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsBoolean, IsInt, IsNumber, Max, Min } from 'class-validator';
import { rule } from './validation.js';

/** Only decimal digits: `Number` would also accept 0x50 and 1e3. */
export const IntegerVariable = (min: number, max: number) =>
  applyDecorators(
    Transform(({ value }) => (/^-?\d{1,15}$/.test(value) ? Number(value) : value)),
    IsInt(),
    Min(min),
    Max(max),
  );

/** From 0 to 1, with a decimal point. */
export const ShareVariable = () =>
  applyDecorators(
    Transform(({ value }) => (/^[01](\.\d{1,9})?$/.test(value) ? Number(value) : value)),
    IsNumber(),
    Min(0),
    Max(1),
  );

/** 0 lets the kernel choose a port. */
export const PortVariable = () => IntegerVariable(0, 65_535);

export const BooleanVariable = () =>
  applyDecorators(
    Transform(({ value }) => (value === 'true' ? true : value === 'false' ? false : value)),
    IsBoolean(),
  );

/** A value of Express' `trust proxy`: a number, addresses, or one of its three names for ranges. */
export const IsTrustProxy = () =>
  rule(
    'isTrustProxy',
    (text: string) => /^(0|[1-9]\d?)$/.test(text) || isListOfNetworks(text),
    'must be a number of proxies, or different IP addresses or networks, separated by commas; a network has a prefix of 1 bit or more',
  );

function isListOfNetworks(text: string): boolean {
  const networks = text.split(',').map((network) => network.trim());
  return networks.every(isNetwork) && new Set(networks).size === networks.length;
}

function isNetwork(text: string): boolean {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(text);
  if (prefix === undefined) return true;
  const minimum = isIpv4Mapped(address) ? 97 : 1;
  return Number(prefix) >= minimum && Number(prefix) <= (version === 4 ? 32 : 128);
}

/** `::ffff:0:0/96` is `0.0.0.0/0`: it trusts all IPv4 addresses (RFC 4291 §2.5.5.2). */
function isIpv4Mapped(address: string): boolean {
  const url = `http://[${address}]`;
  return URL.canParse(url) && /^\[::ffff:[0-9a-f]+:[0-9a-f]+\]$/.test(new URL(url).hostname);
}
