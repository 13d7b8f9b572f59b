"""The pictures as SVG, drawn by hand: no script, no reference, no id, so a widget keeps them whole.

CloudWatch removes script, use and iframe of a widget's HTML, and keeps SVG and CSS
(docs.aws.amazon.com, AmazonCloudWatch, add_custom_widget_dashboard_security). Hatching is a path,
and not a pattern, since that is referred to by an id, which two pictures of a page would share.
"""
