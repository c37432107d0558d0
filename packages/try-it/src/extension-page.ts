/** A page on which people try what an extension adds. The service serves it only with `TRY_IT=true` (protocol §11). */
export interface ExtensionPage {
  /** The text of the link on the try-it page. */
  title: string;
  /** The path of the page, which a controller of the extension serves. */
  path: `/try/${string}`;
  /** Grants of the extension that the web client of a new demo registry may use. */
  grantTypes?: string[];
}
