"""Token formats of git hosts, CI services, package registries and observability services."""

from __future__ import annotations

from lopen.base.secret_formats.shape import Format

GIT_HOSTS = (
    Format("github_token", ("gh",), r"gh[pousr]_[A-Za-z0-9]{36,255}\b", "ghp_{w36}"),
    Format("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{40,255}\b", "github_pat_{w22}_{w59}"),
    Format("gitlab_token",
           ("gl",), r"gl(?:pat|dt|rtr?|ptt|cbt|ft|imt|agent|soat|oas|ffct|wt)-[A-Za-z0-9_.-]{20,320}", "glpat-{b20}"),
    Format("gitlab_token", ("GR1348941",), r"GR1348941[A-Za-z0-9_-]{20,50}", "GR1348941{b20}"),
    Format("bitbucket_password", ("ATBB",), r"ATBB[A-Za-z0-9]{32}\b", "ATBB{w32}"),
    Format("atlassian_token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_=-]{100,300}", "ATATT3xFfGF0{b170}={h8}"),
    Format("sourcegraph_token", ("sgp_",), r"sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}\b", "sgp_{h16}_{h40}"),
)  # fmt: skip

CI_SERVICES = (
    Format("circleci_token", ("CCIP",), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}\b",
           "CCIPAT_{w22}_{h40}"),
    Format("buildkite_token", ("bk",), r"bk(?:ua|aj|ct)_[a-f0-9]{40}\b", "bkua_{h40}"),
    Format("sonarqube_token", ("sq",), r"sq[pua]_[a-f0-9]{40}\b", "squ_{h40}"),
    Format("harness_token", ("pat.", "sat."), r"[ps]at\.[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}\b",
           "pat.{b22}.{h24}.{w20}"),
    Format("prefect_key", ("pn",), r"pn[ub]_[A-Za-z0-9]{36}\b", "pnu_{w36}"),
)  # fmt: skip

PACKAGE_REGISTRIES = (
    Format("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36}\b", "npm_{w36}"),
    Format("npm_token", (":_authToken=", ":_password="), r":_(?:authToken|password)=\"?(?P<s>[A-Za-z0-9+/=_-]{20,200})",
           "//registry.example.org/:_authToken={h36}", bits=2.5),
    Format("pypi_token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,300}", "pypi-AgEIcHlwaS5vcmc{b130}"),
    Format("rubygems_key", ("rubygems_",), r"rubygems_[a-f0-9]{48}\b", "rubygems_{h48}"),
    Format("crates_token", ("cio",), r"cio[A-Za-z0-9]{32}\b", "cio{w32}", bits=3.5),
    Format("docker_token", ("dckr_",), r"dckr_[po]at_[A-Za-z0-9_-]{27,40}", "dckr_pat_{b27}"),
    Format("nuget_key", ("oy2",), r"oy2[a-z0-9]{43}\b", "oy2{l43}", bits=3.0),
    Format("clojars_token", ("CLOJARS_",), r"CLOJARS_[a-z0-9]{60}\b", "CLOJARS_{l60}"),
    Format("artifactory_key", ("AKCp",), r"AKCp[A-Za-z0-9]{60,80}\b", "AKCp8{w68}"),
    Format("artifactory_key", ("cmVmdGtu",), r"cmVmdGtu[A-Za-z0-9]{56}\b", "cmVmdGtu{w56}"),
    Format("packagist_token", ("packagist_",), r"packagist_[a-z]{3}_[a-f0-9]{68}\b", "packagist_out_{h68}"),
)  # fmt: skip

OBSERVABILITY = (
    Format("grafana_token", ("glsa_",), r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b", "glsa_{w32}_{h8}"),
    Format("grafana_token", ("glc_",), r"glc_[A-Za-z0-9+/]{32,400}={0,2}", "glc_{s88}", bits=3.0),
    Format("new_relic_key", ("NR",),
           r"NR(?:AK|JS|II|IQ|RA|BR)-[A-Za-z0-9_-]{19,40}", "NRAK-{u27}", bits=2.5),
    Format("new_relic_key", ("FFFFNRAL",), r"[a-f0-9]{32}FFFFNRAL\b", "{h32}FFFFNRAL", lead=32),
    Format("dynatrace_token", ("dt0",), r"dt0[cs](?:01|16)\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}\b",
           "dt0c01.{u24}.{u64}"),
    Format("sentry_token", ("sntry",), r"sntry(?:u_[a-f0-9]{64}\b|s_eyJ[A-Za-z0-9+/=_-]{80,500})",
           "sntryu_{h64}"),
    Format("honeycomb_key", ("hca",), r"hca(?:ik|ic|mk)_[a-z0-9]{58}\b", "hcaik_{l58}"),
    Format("posthog_key", ("phx_",), r"phx_[A-Za-z0-9]{40,60}\b", "phx_{w43}"),
    Format("launchdarkly_key", ("sdk-",),
           r"sdk-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b",
           "sdk-{h8}-{h4}-4{h3}-a{h3}-{h12}"),
    Format("postman_key", ("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}\b", "PMAK-{h24}-{h34}"),
)  # fmt: skip
