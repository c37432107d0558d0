# Each tenant of tenants.yaml as an organization with the client of its web site (docs/tenants.md).
terraform {
  required_providers {
    restapi = { source = "Mastercard/restapi", version = "1.20.0" }
  }
}

variable "admin" {
  description = "The URL of the admin API, such as http://localhost:3002/admin"
}

variable "admin_token" {
  description = "A token with the role registry, without name and role"
  sensitive   = true
}

provider "restapi" {
  uri                  = var.admin
  headers              = { Authorization = "Bearer ${var.admin_token}", Content-Type = "application/json" }
  create_method        = "PUT"
  write_returns_object = true
}

locals {
  tenants = yamldecode(file("${path.module}/tenants.yaml"))
}

resource "restapi_object" "organization" {
  for_each     = local.tenants
  path         = "/organizations"
  create_path  = "/organizations/{id}"
  id_attribute = "id"
  data         = jsonencode({ id = each.key, name = each.value.name, suspended = false })

  # a tenant that the file does not list any more is suspended: its tokens end, its customers stay, and it can come back
  destroy_method = "PATCH"
  destroy_data   = jsonencode({ suspended = true })
}

resource "restapi_object" "site" {
  depends_on   = [restapi_object.organization]
  for_each     = local.tenants
  path         = "/clients"
  create_path  = "/clients/{id}"
  id_attribute = "client_id"
  data = jsonencode({
    client_id       = each.value.site
    name            = each.value.name
    client_type     = "web"
    organization_id = each.key
    redirect_uris   = ["https://${each.value.host}/"]
    scopes          = ["customers:own"]
    suspended       = false
  })

  destroy_method = "PATCH"
  destroy_data   = jsonencode({ suspended = true })
}
