import { IsString } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

/** What every form of the pages carries. A field may be missing; what that means is the page's to say. */
export class PageForm {
  /** Ties the form to the browser that was shown it. */
  @Optional()
  @IsString()
  csrf?: string;
}

/** A form about an authorization request. */
class RequestForm extends PageForm {
  /** The query of the authorization request. */
  @Optional()
  @IsString()
  request?: string;
}

export class SignInForm extends RequestForm {
  @Optional()
  @IsString()
  email?: string;

  @Optional()
  @IsString()
  password?: string;
}

export class ConsentForm extends RequestForm {
  /** The scopes that the page has shown. */
  @Optional()
  @IsString()
  scope?: string;

  @Optional()
  @IsString()
  decision?: string;
}
