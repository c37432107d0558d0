import { IsInt, IsString } from 'class-validator';

/** The codes of a new device. The names are those of RFC 8628 §3.2. */
export class StartResponse {
  /** A secret of the new device, which polls with it. */
  @IsString()
  device_code!: string;

  /** The new device shows it, as text and as a QR code. */
  @IsString()
  user_code!: string;

  /** The lifetime of both codes in seconds. */
  @IsInt()
  expires_in!: number;

  /** The shortest time between two polls, in seconds. */
  @IsInt()
  interval!: number;
}
