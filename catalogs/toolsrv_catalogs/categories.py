"""The 49 categories of ToolBench's catalog, as directories."""

from __future__ import annotations

from toolsrv_registry import names

_DISPLAYED = (
    "Sports|Finance|Data|Entertainment|Travel|Location|Science|Food|Transportation|Music|Business"
    "|Visual Recognition|Tools|Text Analysis|Weather|Gaming|SMS|Events|Health and Fitness|Payments"
    "|Financial|Translation|Storage|Logistics|Database|Search|Reward|Mapping"
    "|Artificial Intelligence/Machine Learning|Email|News, Media|Video, Images|eCommerce|Medical"
    "|Devices|Business Software|Advertising|Education|Media|Social|Commerce|Communication|Other"
    "|Monitoring|Energy|Jobs|Movies|Cryptography|Cybersecurity"
)
CATEGORIES = frozenset(names.standardize_category(name) for name in _DISPLAYED.split("|"))
