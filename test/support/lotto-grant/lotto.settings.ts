import { IsString, Matches } from 'class-validator';

/** The settings of a client in the registry, under `grants: { lotto: … }`. */
export class LottoSettings {
  /** The last digits of winning tickets. */
  @Matches(/^\d{1,5}$/, { message: 'must be one to five digits' })
  winning_ending!: string;

  @IsString()
  prize!: string;
}
