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
