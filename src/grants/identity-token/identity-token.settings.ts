import { ArrayUnique, IsArray, IsIn } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

/** The ways in which a customer can stay on the second device (protocol §4.5). */
export const REMEMBER_KINDS = ['browser', 'refresh_token'] as const;

export type RememberKind = (typeof REMEMBER_KINDS)[number];

/** The registry's settings for the identity token grant, under the client's `grants`. */
export class IdentityTokenSettings {
  /** The values of `remember` that the client may send; if omitted, none. */
  @Optional()
  @IsArray()
  @ArrayUnique()
  @IsIn(REMEMBER_KINDS, { each: true, message: `each must be one of ${REMEMBER_KINDS.join(', ')}` })
  remember?: RememberKind[];
}
