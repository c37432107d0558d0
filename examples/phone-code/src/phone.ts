import { Matches } from 'class-validator';

/** A phone number in the spelling of E.164. Only one spelling is valid, because limits and customers compare texts exactly. */
export const IsPhone = (): PropertyDecorator =>
  Matches(/^\+[1-9]\d{6,14}$/, { message: 'must be a phone number in international format without spaces' });
