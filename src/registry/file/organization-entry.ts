import { Type } from 'class-transformer';
import { IsBoolean, IsObject, IsOptional, ValidateNested } from 'class-validator';
import type { AdmittedPublicClients, GrantSettings } from '../organization.entity.js';
import { IsName, IsPublicClients, IsUuid } from './entry-rules.js';

export class License {
  @IsOptional()
  @IsBoolean()
  chat_between_groups = true;
}

export class OrganizationEntry {
  @IsUuid()
  id: string;

  @IsName()
  name: string;

  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => License)
  license = new License();

  /** Left out: an organization that exists keeps what it has, a new one admits none. */
  @IsOptional()
  @IsPublicClients()
  public_clients?: AdmittedPublicClients;

  @IsOptional()
  @IsObject()
  grants: GrantSettings = {};
}
